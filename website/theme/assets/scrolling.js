// A box that scrolls sideways can be reached with the keyboard; others are no stop for the Tab key.
const reachable = () => {
  for (const box of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap"))
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0
    else box.removeAttribute("tabindex")
}
addEventListener("load", () => setTimeout(reachable))
addEventListener("resize", reachable)
