// A page that was opened from a folder (file://) may not start a worker, and the search needs one. There, a worker is an
// invisible frame: its script runs in it, and messages are events on both sides. A page from a server keeps real workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.early = [] // messages that came before the script of the worker was there
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.title = "search"
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.postMessage = data => this.tell(this, data)
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, address) => before.then(() => this.load(address)), Promise.resolve())
      inside.addEventListener("error", event => this.dispatchEvent(new ErrorEvent("error", { message: event.message })))
      this.load(url).then(() => {
        const early = this.early
        this.early = null
        early.forEach(data => this.postMessage(data))
      })
    }

    load(address) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = new URL(address, location.href).href
        script.onload = resolve
        script.onerror = reject
        this.frame.contentDocument.body.append(script)
      })
    }

    postMessage(data) {
      if (this.early) this.early.push(data)
      else this.tell(this.frame.contentWindow, data)
    }

    // Like a real worker, it never answers within the call that asks.
    tell(whom, data) {
      setTimeout(() => {
        const event = new MessageEvent("message", { data })
        whom.dispatchEvent(event)
        if (typeof whom.onmessage === "function") whom.onmessage(event)
      })
    }

    terminate() {
      this.frame.remove()
    }
  }
}
