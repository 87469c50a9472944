"""A person with a browser: headless Chromium, driven by selenium with the mouse or with the keyboard alone."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

_PATIENCE = 20.0
_TABS = 120  # pressed until something must have been reached
_NAMED = """const one = document.activeElement;
return (one.labels && one.labels.length ? one.labels[0].textContent : one.textContent).trim()"""
_AXE = """const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ['violations']}).then(
    found => done(found.violations.filter(one => ['serious', 'critical'].includes(one.impact)).map(
        one => [one.id, one.help, one.nodes.slice(0, 3).map(node => node.html)])),
    error => done([String(error)]))"""


class Person:
    """What a person can do with the pages."""

    def __init__(self, driver: Any, base: str) -> None:
        self._driver, self.base = driver, base
        self._complaints: list[str] = []
        self._asked: list[str] = []

    @classmethod
    @contextmanager
    def at(cls, link: str, program: str) -> Iterator[Person]:
        """Open a browser, and come in by a link."""
        options = Options()
        options.binary_location = program
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
        try:
            driver.set_page_load_timeout(60)
            driver.get(link)
            person = cls(driver, link.split("/start")[0])
            person.until(lambda: driver.current_url.startswith(f"{person.base}/cases"))
            yield person
        finally:
            driver.quit()

    # -- looking -----------------------------------------------------------------------------------------------------

    def look(self, width: int, *, dark: bool = False) -> None:
        """Choose the width of the window, and light or dark."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def open(self, address: str) -> None:
        """Open a page, and wait for what is measured."""
        self._driver.get(address)
        self.until(lambda: not self._driver.find_elements(By.CSS_SELECTOR, 'meta[http-equiv="refresh"]'))

    def text(self) -> str:
        return str(self._driver.find_element(By.TAG_NAME, "body").text)

    def value(self, script: str) -> Any:
        return self._driver.execute_script(f"return {script}")

    def first_link(self) -> str:
        return str(self._driver.find_element(By.CSS_SELECTOR, "th.main a").get_attribute("href"))

    def link_of(self, text: str) -> str:
        return str(self._driver.find_element(By.LINK_TEXT, text).get_attribute("href"))

    def picture(self) -> str:
        return str(self._driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})["data"])

    def axe(self, source: str) -> list[Any]:
        """Return what axe-core finds serious or critical; its script is run by the driver, past the page's own policy."""
        self._driver.execute_script(source)
        return list(self._driver.execute_async_script(_AXE))

    def complaints(self, but: Collection[str] = ()) -> list[str]:
        """Return the errors and warnings in the console so far, except those about these addresses."""
        entries = self._driver.get_log("browser")
        self._complaints += [one["message"] for one in entries if one["level"] in ("SEVERE", "WARNING")]
        return [one for one in self._complaints if not any(name in one for name in but)]

    def asked_for(self) -> list[str]:
        """Return the addresses that the browser asked for so far."""
        for entry in self._driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._asked.append(message["params"]["request"]["url"])
        return self._asked

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until something is the case; a page may be left meanwhile."""
        over = time.monotonic() + _PATIENCE
        while time.monotonic() < over:
            try:
                if true():
                    return
            except WebDriverException:
                pass
            time.sleep(0.05)
        raise AssertionError(f"waited in vain: {self._driver.current_url}: {self.text()[:500]}")

    # -- with the mouse ----------------------------------------------------------------------------------------------

    def click(self, name: str) -> None:
        """Click on a link, a button or a summary with this text."""
        found = f"//*[self::a or self::button or self::summary][normalize-space()={json.dumps(name)}]"
        self._driver.find_element(By.XPATH, found).click()

    def write(self, field: str, text: str) -> None:
        """Write into a field, in place of what is there."""
        there = self._driver.find_element(By.NAME, field)
        there.clear()
        there.send_keys(text)

    # -- with the keyboard alone -------------------------------------------------------------------------------------

    def tab_to(self, name: str) -> None:
        """Press Tab until something with this name has the focus, which must be visible."""
        for _ in range(_TABS):
            self.press("Tab")
            if self._driver.execute_script(_NAMED) == name:
                outline = self._driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", f"nobody sees that {name!r} has the focus"
                return
        raise AssertionError(f"{name!r} cannot be reached with Tab")

    def press(self, key: str) -> None:
        before = self._driver.current_url
        ActionChains(self._driver).send_keys(getattr(Keys, key.upper())).perform()
        if key == "Enter":
            time.sleep(0.3)
            self.until(lambda: self._driver.execute_script("return document.readyState") == "complete" or before == "")

    def type_over(self, text: str) -> None:
        """Replace what stands in the field that has the focus."""
        ActionChains(self._driver).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).send_keys(text).perform()
