#!/usr/bin/env python3
"""Makes top.svg and report.svg from real runs: `python3 docs/pictures/make.py target/release/outlast`.

Needs tmux. Everything happens in a temporary directory, with a daemon of its own that is stopped at the end.
"""

import html
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS, ROWS = 92, 26
CELL, LINE = 8.0, 17
INK, PAPER = "#d8dee9", "#1e222a"
COLOURS = ["#4b5263", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9"]

ASKS = """---
agent:
  kind: file
  command: |
    echo "reading parser.rs"
    printf '{"status":"blocked","summary":"May I change the public name mul to multiply? It may break callers.","usage":{"input_tokens":41000,"output_tokens":2100,"cost_usd":0.42}}' > "$OUTLAST_RESPONSE_FILE"
---
rename
"""
PORT = """---
agent:
  kind: file
  command: |
    echo "turn $OUTLAST_TURN: porting the parser"
    if [ "$OUTLAST_TURN" -lt 3 ]; then status=continue; else status=done; fi
    printf '{"status":"%s","summary":"parser ported, tests pass","usage":{"input_tokens":18000,"output_tokens":900,"cost_usd":0.11}}' "$status" > "$OUTLAST_RESPONSE_FILE"
checks:
  done: ["true"]
---
port the parser
"""


def main(outlast: str) -> None:
    outlast = str(Path(outlast).resolve())
    here = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        work = Path(scratch) / "work"
        work.mkdir()
        home.mkdir(mode=0o700)
        env = {**os.environ, "OUTLAST_HOME": str(home), "TERM": "xterm-256color"}
        env.pop("NO_COLOR", None)

        def call(*args: str, ok: bool = True) -> str:
            done = subprocess.run([outlast, *args], cwd=work, env=env, text=True, capture_output=True)
            if ok and done.returncode != 0:
                raise SystemExit(f"outlast {' '.join(args)}: exit {done.returncode}\n{done.stderr}")
            return done.stdout

        (work / "ASKS.md").write_text(ASKS)
        (work / "PORT.md").write_text(PORT)
        try:
            call("run", "-d", "--name", "port", "-f", "PORT.md")
            call("wait", "port", "--timeout", "60s")
            call("run", "-d", "--name", "train", "--", "sh", "-c", "echo 'CUDA out of memory'; exit 137")
            call("wait", "train", "--timeout", "60s", ok=False)
            call("run", "-d", "--name", "serve", "--", "sh", "-c", "echo 'GET / 200'; exec sleep 600")
            call("run", "-d", "--name", "nightly", "--", "sh", "-c", "echo 'Compiling parser v0.3.1'; exec sleep 600")
            call("run", "-d", "--name", "rename", "-f", "ASKS.md")
            call("wait", "rename", "--timeout", "60s", ok=False)
            shots = {"top": [outlast, "top"], "report": ["sh", "-c", f"{outlast} report --since 12h; exec sleep 60"]}
            for name, command in shots.items():
                (here / f"{name}.svg").write_text(svg(name, capture(f"{scratch}/{name}", command, env, work)))
        finally:
            for run in json.loads(call("ps", "--json", ok=False) or "[]"):
                call("stop", run["id"], "--now", ok=False)
            call("daemon", "stop", ok=False)


def capture(socket: str, command: list[str], env: dict, work: Path) -> str:
    """What a terminal shows once it has stopped changing."""
    tmux = ["tmux", "-S", socket]
    start = [*tmux, "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-s", "shot", *command]
    subprocess.run(start, cwd=work, env=env, check=True)
    try:
        last, since = "", time.monotonic()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            time.sleep(0.2)
            now = subprocess.run([*tmux, "capture-pane", "-e", "-p", "-t", "shot"], check=True, text=True, capture_output=True).stdout
            if now != last:
                last, since = now, time.monotonic()
            elif now.strip() and time.monotonic() - since > 1.5:
                break
        return last
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def svg(name: str, screen: str) -> str:
    lines = screen.rstrip("\n").split("\n")
    while lines and not re.sub(r"\x1b\[[0-9;]*m", "", lines[-1]).strip():
        lines.pop()
    width, height = int(COLUMNS * CELL) + 24, len(lines) * LINE + 24
    body = "\n".join(row(text, 12 + (at + 0.8) * LINE) for at, text in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
        f"<title>outlast {name}</title>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{PAPER}"/>\n'
        f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" xml:space="preserve" fill="{INK}">\n{body}\n</g>\n</svg>\n'
    )


def row(text: str, y: float) -> str:
    """One line of the screen; the escape sequences for colours become spans."""
    style = {"fg": None, "bold": False, "dim": False, "reverse": False}
    column, parts = 0, []
    for piece in re.split(r"(\x1b\[[0-9;]*m)", text):
        if piece.startswith("\x1b["):
            apply(style, piece[2:-1])
        elif piece:
            if piece.strip() or style["reverse"]:
                parts.append(span(piece, column, y, style))
            column += len(piece)
    return "".join(parts)


def apply(style: dict, codes: str) -> None:
    numbers = [int(code or 0) for code in codes.split(";")]
    while numbers:
        code = numbers.pop(0)
        if code == 0:
            style.update(fg=None, bold=False, dim=False, reverse=False)
        elif code == 1:
            style["bold"] = True
        elif code == 2:
            style["dim"] = True
        elif code == 22:
            style.update(bold=False, dim=False)
        elif code in (7, 27):
            style["reverse"] = code == 7
        elif 30 <= code <= 37:
            style["fg"] = COLOURS[code - 30]
        elif 90 <= code <= 97:
            style["fg"] = COLOURS[code - 90]
        elif code == 39:
            style["fg"] = None
        elif code in (38, 48):
            del numbers[: 2 if numbers[:1] == [5] else 4]


def span(text: str, column: int, y: float, style: dict) -> str:
    x = 12 + column * CELL
    fill, back = style["fg"] or INK, ""
    if style["reverse"]:
        back = f'<rect x="{x:.1f}" y="{y - LINE * 0.78:.1f}" width="{len(text) * CELL:.1f}" height="{LINE}" fill="{fill}"/>'
        fill = PAPER
    weight = ' font-weight="bold"' if style["bold"] else ""
    opacity = ' opacity="0.6"' if style["dim"] else ""
    # The length is given, so that no font moves a column.
    length = f' textLength="{len(text) * CELL:.1f}"'
    return f'{back}<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{weight}{opacity}{length}>{html.escape(text)}</text>'


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
