/* What is wider than the page can be scrolled from the keyboard, and nothing else is a stop of it. */
(function () {
  function mark() {
    document.querySelectorAll("article pre, article .table-wrapper").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }
  addEventListener("load", mark);
  addEventListener("resize", mark);
})();
