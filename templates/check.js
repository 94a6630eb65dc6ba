(() => {
  /** A link to a record opens what it leads to, also where the browser does not do so itself. */
  function reveal() {
    const element = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    const around = element?.closest("details");
    if (!around) return;
    around.open = true;
    around.scrollIntoView({ block: "start" });
  }
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => {
    if (event.target.closest('a[href^="#"]')) setTimeout(reveal);
  });
  page.start();
  reveal();
})();
