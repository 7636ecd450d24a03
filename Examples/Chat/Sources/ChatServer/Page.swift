// SPDX-License-Identifier: MIT
// Copyright the EventCore authors

/// What browsers show: who is here, what is said, and what was missed.
let page = #"""
  <!DOCTYPE html>
  <html lang="en">
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width">
  <title>EventCore chat</title>
  <style>
    body { font: 16px/1.4 system-ui, sans-serif; margin: 0 auto; max-width: 46rem; padding: 1rem; }
    #said { border: 1px solid #bbb; height: 60vh; margin: .5rem 0; overflow-y: auto; padding: .5rem; }
    #said p { margin: 0; overflow-wrap: anywhere; }
    .notice { color: #777; }
    form { display: flex; gap: .5rem; }
    input { flex: 1; font: inherit; min-width: 0; padding: .3rem; }
  </style>
  <h1>EventCore chat</h1>
  <form id="join">
    <input name="name" placeholder="name" maxlength="32" required autofocus>
    <input name="room" placeholder="room" maxlength="32" value="lobby" required>
    <button>Join</button>
  </form>
  <div id="here" class="notice"></div>
  <div id="said"></div>
  <form id="say"><input name="text" placeholder="a message, /who or /history" autocomplete="off"></form>
  <script>
    const at = id => document.getElementById(id);
    let socket, here = [];
    const show = (text, kind) => {
      const line = document.createElement("p");
      line.textContent = text;
      line.className = kind;
      at("said").append(line);
      line.scrollIntoView();
    };
    const message = line => show(`${line.said.name}: ${line.said.text}`, "said");
    const handlers = {
      said: (_, line) => message(line),
      history: lines => lines.forEach(message),
      here: ({ names }) => here = names,
      arrived: ({ name }) => here.push(name),
      // It may be missing, after missed lines.
      left: ({ name }) => here.includes(name) && here.splice(here.indexOf(name), 1),
      missed: ({ count }) => show(`You missed ${count} lines.`, "notice"),
      error: ({ text }) => show(text, "notice"),
    };
    at("join").onsubmit = event => {
      event.preventDefault();
      socket?.close();
      at("said").replaceChildren();
      const [name, room] = ["name", "room"].map(field => encodeURIComponent(event.target[field].value));
      const mine = socket = new WebSocket(`ws://${location.host}/chat?name=${name}&room=${room}`);
      mine.onmessage = ({ data }) => {
        if (mine !== socket) return;
        for (const line of data.split("\n").map(JSON.parse))
          for (const kind in line) handlers[kind]?.(line[kind], line);
        at("here").textContent = "Here: " + [...new Set(here)].sort().join(", ");
      };
      mine.onclose = ({ reason }) => mine === socket && show(`Closed. ${reason}`, "notice");
    };
    at("say").onsubmit = event => {
      event.preventDefault();
      socket?.send(event.target.text.value);
      event.target.reset();
    };
  </script>
  </html>
  """#
