// For libraries that create <style> elements, and set the attribute style: the content security policy forbids both, but
// allows style sheets that scripts construct, and the property style.

/**
 * Let document.createElement return elements that comply with the policy.
 *
 * @returns {() => void} Restores document.createElement.
 */
export function useStrictStyles() {
  const page = document;
  /** @param {string} name @param {ElementCreationOptions} [options] */
  const createElement = (name, options) =>
    (name.toLowerCase() === "style" ? styleHolder(page) : withoutAttribute(Document.prototype.createElement.call(page, name, options)));
  Object.defineProperty(page, "createElement", { value: createElement, configurable: true });
  return () => { Reflect.deleteProperty(page, "createElement"); };
}

/** Let an element, and its copies, set the property style instead of the attribute. @param {HTMLElement} element @returns {HTMLElement} */
function withoutAttribute(element) {
  element.setAttribute = (attribute, value) => {
    if (attribute.toLowerCase() === "style") element.style.cssText = value;
    else Element.prototype.setAttribute.call(element, attribute, value);
  };
  element.cloneNode = (deep) => withoutAttribute(/** @type {HTMLElement} */ (Element.prototype.cloneNode.call(element, deep)));
  return element;
}

/** Return an element instead of <style>: its text is a style sheet of the document until it is removed. @param {Document} page */
function styleHolder(page) {
  const holder = Document.prototype.createElement.call(page, "span"), sheet = new CSSStyleSheet();
  let text = "";
  page.adoptedStyleSheets.push(sheet);
  Object.defineProperty(holder, "textContent", { get: () => text, set: (value) => { text = value; sheet.replaceSync(value); } });
  holder.hidden = true;
  holder.remove = () => {
    page.adoptedStyleSheets = page.adoptedStyleSheets.filter((one) => one !== sheet);
    Element.prototype.remove.call(holder);
  };
  return holder;
}
