/* A page that is opened from disk may start no worker, and the site's search is one: run it in a frame of its own. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const told = (to, data) => to.dispatchEvent(new MessageEvent("message", { data }));
      const loaded = (source) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          Object.assign(script, { src: source, onload: done, onerror: failed });
          inside.document.body.append(script);
        });
      inside.postMessage = (data) => told(this, data);
      inside.importScripts = (...sources) => sources.reduce((before, one) => before.then(() => loaded(one)), Promise.resolve());
      this.ready = loaded(url);
      this.postMessage = (data) => this.ready.then(() => told(inside, data));
      this.addEventListener("message", (event) => this.onmessage?.(event));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
