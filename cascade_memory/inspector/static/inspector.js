// Everything works without this file: it only saves a click where a choice leads to another page.
"use strict";

for (const choice of document.querySelectorAll("select[data-submits]")) {
  const button = choice.form.querySelector("button[type=submit]");
  button.hidden = true;
  let byMouse = false; // with the keyboard, each arrow key is a change: there, Enter opens what was chosen
  choice.addEventListener("pointerdown", () => { byMouse = true; });
  choice.addEventListener("keydown", (event) => {
    byMouse = false;
    if (event.key === "Enter") choice.form.requestSubmit();
  });
  choice.addEventListener("change", () => { if (byMouse) choice.form.requestSubmit(); });
}
