/* Pause and resume the daemon of a network. */
import { say, send } from "./shell.js";

for (const button of document.querySelectorAll("[data-share]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await send(button.dataset.share, {});
      location.reload();
    } catch (error) {
      say(error.message);
      button.disabled = false;
    }
  });
}
