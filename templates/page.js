"use strict";
/* What every page does: its two languages, copying a command, folding sections, printing all that is folded. */
const page = (() => {
  const root = document.documentElement;
  const listeners = [];
  root.classList.add("scripted");

  function speak(language) {
    root.lang = language;
    document.title = document.querySelector(`#heading .${language === "en" ? "en" : "zh"}`)?.textContent ?? document.getElementById("heading").textContent;
    for (const button of document.querySelectorAll("button[data-lang]")) button.setAttribute("aria-pressed", String(button.dataset.lang === language));
    for (const element of document.querySelectorAll("[data-label-en]")) element.setAttribute("aria-label", element.dataset[language === "en" ? "labelEn" : "labelZh"]);
    listeners.forEach((listener) => listener());
  }

  /** Where the browser keeps the clipboard from a page, what is to be copied is selected and copied as a person would. */
  async function copy(button) {
    const text = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(text.textContent);
    } catch {
      getSelection().selectAllChildren(text);
      if (!document.execCommand("copy")) return;
      getSelection().removeAllRanges();
    }
    button.classList.add("copied");
    button.querySelector(".before").hidden = true;
    button.querySelector(".after").hidden = false;
    setTimeout(() => {
      button.classList.remove("copied");
      button.querySelector(".before").hidden = false;
      button.querySelector(".after").hidden = true;
    }, 1600);
  }

  document.addEventListener("click", (event) => {
    const language = event.target.closest("button[data-lang]");
    const copying = event.target.closest("button[data-copy]");
    const folding = event.target.closest("button[data-open]");
    if (language) speak(language.dataset.lang);
    if (copying) copy(copying);
    if (folding) {
      const all = [...document.getElementById(folding.dataset.open).querySelectorAll("details")];
      const opened = all.every((one) => one.open);
      for (const one of all) one.open = !opened;
    }
  });
  let folded = [];
  addEventListener("beforeprint", () => { folded = [...document.querySelectorAll("details:not([open])")]; for (const one of folded) one.open = true; });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });

  return {
    get language() { return root.lang.startsWith("zh") ? "zh" : "en"; },
    start(listener) {
      if (listener) listeners.push(listener);
      const asked = new URLSearchParams(location.search).get("lang") || navigator.language || root.lang;
      speak(asked.toLowerCase().startsWith("zh") ? "zh-CN" : "en");
    },
  };
})();
