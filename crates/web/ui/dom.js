// Elements from plain data. Text is always a text node, so nothing that a run wrote becomes markup.

/**
 * Makes an element: properties by name, `on*` for listeners, then children (elements, text, or lists of both).
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [props]
 * @param {any[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' && 'value' in element) element.value = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * The first element for a selector, as one that can be pressed and focused.
 * @param {ParentNode} within
 * @param {string} css
 * @returns {HTMLElement | null}
 */
export function find(within, css) {
  return within.querySelector(css);
}

/** Replaces what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

/** Puts these keyed elements into `parent` in order, and moves only what has to move. */
export function order(parent, elements) {
  let at = parent.firstChild;
  for (const element of elements) {
    if (element === at) at = at.nextSibling;
    else parent.insertBefore(element, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// C0 without tab and newline, DEL, C1, marks of direction, invisible separators, tags.
const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Text of others, with what a reader could not see or would be fooled by shown as a mark. */
export function plain(text) {
  return String(text ?? '').replace(OBEYED, (c) => `\u27e8${(c.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}\u27e9`);
}

/** A drawing's element; its text is a text node, too. */
export function svg(tag, props, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(props ?? {})) element.setAttribute(name, String(value));
  add(element, children);
  return element;
}

/** A table with a head, for people and as what stands behind a drawing. */
export function table(caption, heads, rows) {
  return h('div', { class: 'scrolls', tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', {}, caption), h('thead', {}, h('tr', {}, heads.map((it) => h('th', { scope: 'col' }, it)))),
      h('tbody', {}, rows.map((row) => h('tr', {}, row.map((it, at) => (at === 0 ? h('th', { scope: 'row' }, it) : h('td', {}, it))))))));
}

/** What went wrong, with what helps. */
export function problem(error) {
  return h('p', { class: 'problem', role: 'alert' }, plain(error.message), error.hint ? ` (${plain(error.hint)})` : '');
}
