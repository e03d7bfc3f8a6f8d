import { send } from "/static/shell.js";

const problem = document.querySelector("[data-problem]");
const form = document.querySelector("[data-login]");
async function enter(token) {
  try {
    await send("/login", { token });
    location.replace("/");
  } catch (error) {
    problem.textContent = error.message;
  }
}
const token = decodeURIComponent(location.hash.slice(1));
if (token) {
  history.replaceState(null, "", "/login"); // the token stays in no history
  enter(token);
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  enter(new FormData(form).get("token"));
});
