"""Uses the client that was made from the document: starts a run, lists it, and is refused."""
import sys

import httpx
from outlast_client import Client
from outlast_client.api.runs import create_run, list_runs, show_run
from outlast_client.models import CreateRun, ErrorBody

socket, directory = sys.argv[1:]
client = Client("http://localhost", httpx_args={"transport": httpx.HTTPTransport(uds=socket)})
asked = CreateRun(dir_=directory, command=["true"], name="generated")
made = create_run.sync(client=client, body=asked)
row = next(row for row in list_runs.sync(client=client, all_=True) if row.id == made.id)
assert (row.name, row.what) == ("generated", "true"), row
refused = show_run.sync(client=client, run="nosuchrun")
assert isinstance(refused, ErrorBody) and refused.error.code == "unknown_run", refused
print(made.id)
