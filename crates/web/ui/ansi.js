// Bytes of a terminal into lines of text: colours are kept, a carriage return rewrites its line, all else that a
// terminal would obey is dropped. Makes text nodes only.

import { h, plain } from './dom.js';

/** Characters of one line that are shown; of a longer one the rest is counted. */
const WIDEST = 8192;
/** @typedef {{ fg: number | string | null, bg: number | string | null, bold: boolean, dim: boolean, italic: boolean, under: boolean, inverse: boolean }} Style */

/** @type {Style} */
const BASE = { fg: null, bg: null, bold: false, dim: false, italic: false, under: false, inverse: false };

export class Screen {
  /** `commit(element, offset, at)` is called for each whole line, with the offset of its first byte and its time. */
  constructor(commit) {
    this.commit = commit;
    this.decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    this.style = { ...BASE };
    /** The sequence that has begun. @type {string | null} */
    this.escape = null;
    /** @type {{ c: string, style: Style }[]} */
    this.cells = [];
    this.column = 0;
    this.more = 0;
    /** Where the line begins; `null` before its first byte. @type {number | null} */
    this.offset = null;
    this.stream = 'stdout';
    this.at = 0;
    this.open = null;
  }

  /** @param {number | null} offset */
  newLine(offset) {
    this.cells = [];
    this.column = 0;
    this.more = 0;
    this.offset = offset;
    this.stream = 'stdout';
    this.at = 0;
  }

  write(bytes, offset, stream, at = 0) {
    let from = 0;
    while (from < bytes.length) {
      const end = bytes.indexOf(10, from);
      const to = end < 0 ? bytes.length : end;
      if (this.offset === null) [this.offset, this.at] = [offset + from, at];
      if (to > from) {
        this.stream = stream;
        this.put((this.decoders[stream] ?? this.decoders.stdout).decode(bytes.subarray(from, to), { stream: true }));
      }
      if (end >= 0) {
        this.commit(this.line(), this.offset, this.at);
        this.newLine(null);
      }
      from = to + 1;
    }
  }

  /** The line that is not whole yet, if it has begun. */
  rest() {
    return this.offset === null ? null : this.line();
  }

  put(text) {
    for (const c of text) {
      if (this.escape !== null) this.escaped(this.escape + c, c);
      else if (c === '\u001b') this.escape = '';
      else if (c === '\u009b') this.escape = '[';
      else if (c === '\r') this.column = 0;
      else if (c === '\b') this.column = Math.max(0, this.column - 1);
      else if (c !== '\u0007') this.cell(c);
    }
  }

  cell(c) {
    if (this.column >= WIDEST) {
      this.more += 1;
      return;
    }
    this.cells[this.column] = { c, style: this.style };
    this.column += 1;
  }

  /** A sequence with its newest character. @param {string} escape @param {string} c */
  escaped(escape, c) {
    this.escape = escape;
    const [first] = escape;
    if (first === '[') {
      if (escape.length > 1 && c >= '@' && c <= '~') this.control(escape.slice(1, -1), c);
      else if (escape.length > 64) this.escape = null;
    } else if (first === ']' || first === 'P' || first === '_' || first === '^' || first === 'X') {
      // Titles, links, the clipboard: taken out whole, up to BEL or ESC \.
      if (c === '\u0007' || escape.endsWith('\u001b\\')) this.escape = null;
      else if (escape.length > 65536) this.escape = null;
    } else if (!(c >= ' ' && c <= '/')) this.escape = null;
  }

  /** @param {string} body @param {string} final */
  control(body, final) {
    this.escape = null;
    if (final === 'm' && /^[0-9;:]*$/.test(body)) this.colour(body.split(/[;:]/).map(Number));
    else if (final === 'K') this.erase(body);
  }

  erase(body) {
    if (body === '2') this.cells = [];
    else if (body === '' || body === '0') this.cells.length = Math.min(this.cells.length, this.column);
  }

  colour(codes) {
    const style = { ...this.style };
    for (let i = 0; i < codes.length; i += 1) {
      const code = codes[i];
      if (code === 0) Object.assign(style, BASE);
      else if (code === 1) style.bold = true;
      else if (code === 2) style.dim = true;
      else if (code === 3) style.italic = true;
      else if (code === 4) style.under = true;
      else if (code === 7) style.inverse = true;
      else if (code === 22) style.bold = style.dim = false;
      else if (code === 23) style.italic = false;
      else if (code === 24) style.under = false;
      else if (code === 27) style.inverse = false;
      else if (code >= 30 && code <= 37) style.fg = code - 30;
      else if (code >= 90 && code <= 97) style.fg = code - 82;
      else if (code === 39) style.fg = null;
      else if (code >= 40 && code <= 47) style.bg = code - 40;
      else if (code >= 100 && code <= 107) style.bg = code - 92;
      else if (code === 49) style.bg = null;
      else if (code === 38 || code === 48) {
        const name = code === 38 ? 'fg' : 'bg';
        if (codes[i + 1] === 5) {
          style[name] = palette(codes[i + 2]);
          i += 2;
        } else if (codes[i + 1] === 2) {
          style[name] = rgb(codes.slice(i + 2, i + 5));
          i += 4;
        }
      }
    }
    this.style = style;
  }

  line() {
    const line = h('div', { class: this.stream === 'stderr' ? 'line err' : 'line', 'data-at': this.offset });
    if (this.at > 0) line.dataset.time = clockOf(this.at);
    let text = '';
    let style = BASE;
    const flush = () => {
      if (text) line.append(styled(plain(text), style));
      text = '';
    };
    for (let i = 0; i < this.cells.length; i += 1) {
      const cell = this.cells[i] ?? { c: ' ', style: BASE };
      if (cell.style !== style) {
        flush();
        style = cell.style;
      }
      text += cell.c;
    }
    flush();
    if (this.more > 0) line.append(h('span', { class: 'dim' }, ` \u2026 ${this.more} more characters`));
    return line;
  }
}

function clockOf(ms) {
  return new Date(ms).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
}

/** @param {string} text @param {Style} style */
function styled(text, style) {
  const names = [];
  for (const name of ['bold', 'dim', 'italic', 'under', 'inverse']) if (style[name]) names.push(`a-${name}`);
  if (typeof style.fg === 'number') names.push(`f${style.fg}`);
  if (typeof style.bg === 'number') names.push(`b${style.bg}`);
  if (names.length === 0 && typeof style.fg !== 'string' && typeof style.bg !== 'string') return document.createTextNode(text);
  const span = h('span', { class: names.join(' ') || null }, text);
  if (typeof style.fg === 'string') span.style.color = style.fg;
  if (typeof style.bg === 'string') span.style.backgroundColor = style.bg;
  return span;
}

function palette(index) {
  if (!(index >= 0 && index <= 255)) return null;
  if (index < 16) return index;
  if (index >= 232) return rgb(Array(3).fill(8 + (index - 232) * 10));
  const at = index - 16;
  return rgb([Math.floor(at / 36), Math.floor(at / 6) % 6, at % 6].map((it) => (it === 0 ? 0 : 55 + it * 40)));
}

function rgb(parts) {
  return parts.length === 3 && parts.every((it) => it >= 0 && it <= 255) ? `rgb(${parts.join(',')})` : null;
}
