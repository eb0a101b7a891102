"""Starts `outlast mcp --http` beside a script, for the scripts that import this."""
import os, subprocess

server = subprocess.Popen([os.environ["OUTLAST"], "mcp", "--http"], stdout=subprocess.PIPE, text=True)
URL = server.stdout.readline().strip()
TOKEN = os.environ["OUTLAST_TOKEN"]
PORT = int(URL.removeprefix("http://127.0.0.1:").removesuffix("/mcp"))
