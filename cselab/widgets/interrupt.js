// A button that interrupts the kernel, as JupyterLab's own stop button does. A running cell cannot
// hear a message of a widget, so the request goes to the server.
export default {
  render({ model, el }) {
    const button = document.createElement("button");
    button.className = "jupyter-widgets jupyter-button widget-button";
    button.textContent = "■ stop";
    button.title = "interrupt the kernel; run the cell again to go on";
    button.onclick = async () => {
      const page = document.getElementById("jupyter-config-data");
      const base = page ? JSON.parse(page.textContent).baseUrl : "/";
      const xsrf = document.cookie.match(/(?:^|; )_xsrf=([^;]*)/);
      const reply = await fetch(`${base}api/kernels/${model.get("kernel_id")}/interrupt`, {
        method: "POST",
        headers: xsrf ? { "X-XSRFToken": decodeURIComponent(xsrf[1]) } : {},
      });
      if (!reply.ok) button.textContent = "use the ■ of the toolbar";
    };
    el.append(button);
  },
};
