// Runs in a world of its own beside the page's scripts, which can neither see nor change it.
// Evaluates to an object of functions that `page.py` keeps for as long as the document lives.
(() => {
  const BLOCKS = /^(block|flex|grid|list-item|table|table-row|flow-root|table-caption)/;
  const ROLES = /^(button|link|checkbox|radio|tab|menuitem|menuitemcheckbox|menuitemradio|option|switch|textbox|searchbox|combobox|slider|spinbutton)$/;
  const TYPED_BY_VALUE = /^(date|time|datetime-local|month|week|range|color)$/;
  const NOT_TYPED = /^(checkbox|radio|submit|button|image|reset|file|hidden)$/;
  const LABEL_CHARS = 100;
  const OPTION_COUNT = 20;
  let numbered = [];

  // A form has its fields as members, and a document its forms: `form.children` may be a field
  // called "children". What the elements are made by is asked instead.
  const getter = (prototype, name) => {
    const found = Object.getOwnPropertyDescriptor(prototype, name).get;
    return (object) => found.call(object);
  };
  const nodesOf = getter(Node.prototype, "childNodes");
  const parentOf = getter(Node.prototype, "parentElement");
  const nameOf = getter(Element.prototype, "localName");
  const shadowOf = getter(Element.prototype, "shadowRoot");
  const bodyOf = getter(Document.prototype, "body");
  const titleOf = getter(Document.prototype, "title");
  const scrollerOf = getter(Document.prototype, "scrollingElement");
  const outside = (node) => parentOf(node) ?? node.getRootNode().host;

  const clean = (text, most = LABEL_CHARS) => {
    const flat = String(text ?? "").replace(/\s+/g, " ").trim();
    return flat.length > most ? flat.slice(0, most - 1) + "…" : flat;
  };
  const isShown = (element) => {
    if (element.checkVisibility({visibilityProperty: true})) return true;
    const above = outside(element);  // without a box of its own it is shown as part of what is above
    return Boolean(above) && getComputedStyle(element).display === "contents" && isShown(above);
  };
  const hasSize = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0;
  };

  function* inside(root) {
    for (const child of nodesOf(root)) {
      if (child.nodeType !== Node.ELEMENT_NODE) continue;
      if (!isShown(child)) {
        // A hidden parent may have visible children only by `visibility`.
        if (getComputedStyle(child).visibility === "hidden") yield* inside(child);
        continue;
      }
      yield child;
      if (shadowOf(child)) yield* inside(shadowOf(child));
      yield* inside(child);
    }
  }

  function kind(element) {
    const name = nameOf(element);
    if (name === "a" || name === "area") return element.hasAttribute("href") ? "link" : "";
    if (name === "button" || name === "summary") return "button";
    if (name === "select" || name === "textarea") return name;
    if (name === "input") return element.type === "hidden" ? "" : `input ${element.type}`;
    if (element.isContentEditable && !parentOf(element)?.isContentEditable) return "textbox";
    const role = (element.getAttribute("role") ?? "").trim().toLowerCase();
    if (ROLES.test(role)) return role;
    return element.hasAttribute("onclick") ? "button" : "";
  }

  function label(element) {
    const root = element.getRootNode();
    const named = (element.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean)
      .map((id) => root.getElementById?.(id)?.innerText ?? "").join(" ");
    const buttons = /^(submit|button|reset)$/.test(element.type) ? element.value : "";
    const inner = /^(input|select|textarea)$/.test(element.localName) ? "" : element.innerText;
    const found = [
      element.getAttribute("aria-label"), named,
      ...[...(element.labels ?? [])].map((item) => item.innerText),
      buttons, inner, element.querySelector?.("img[alt]")?.alt, element.alt,
      element.placeholder, element.title, element.name,
    ];
    return clean(found.find((text) => clean(text)) ?? "");
  }

  function value(element) {
    if (element.localName === "select") return clean(element.selectedOptions[0]?.label);
    if (/^(checkbox|radio)$/.test(element.type)) return element.checked ? "checked" : "not checked";
    if (element.type === "password") return element.value ? "(hidden)" : "";
    if (element.localName === "textarea") return clean(element.value);
    if (element.localName === "input" && !NOT_TYPED.test(element.type)) return clean(element.value);
    return "";
  }

  function target(element) {
    if (!/^(a|area)$/.test(element.localName)) return "";
    const url = String(element.href);
    return clean(url.startsWith(location.origin + "/") ? url.slice(location.origin.length) : url, 160);
  }

  function describe(element) {
    const options = element.localName === "select" ? [...element.options] : [];
    return {
      kind: kind(element), label: label(element), value: value(element), target: target(element),
      is_disabled: Boolean(element.disabled),
      options: options.slice(0, OPTION_COUNT).map((option) => clean(option.label, 60)),
    };
  }

  // The line an element's text stands in, and the box in that line it has to itself, if it has one.
  function placeOf(element) {
    let box = null;
    for (let at = element; at; at = outside(at)) {
      const display = getComputedStyle(at).display;
      if (display === "table-cell") return {block: at, box, row: parentOf(at)};
      if (BLOCKS.test(display)) return {block: at, box, row: null};
      if (display.startsWith("inline-")) box ??= at;
    }
    return {block: null, box, row: null};
  }

  function separator(last, now) {
    if (last.block === undefined) return "";
    if (now.block !== last.block) return now.row && now.row === last.row ? " | " : "\n";
    return now.box !== last.box ? " " : "";
  }

  // Text from the top of the window on, in the order of the document, until there is enough.
  function* texts(root) {
    for (const node of nodesOf(root)) {
      if (node.nodeType === Node.TEXT_NODE) {
        const parent = outside(node);
        if (parent && isShown(parent)) yield node;
      } else if (node.nodeType === Node.ELEMENT_NODE) {
        const name = nameOf(node);
        if (name === "br") yield node;
        if (/^(script|style|noscript|template|select|textarea)$/.test(name)) continue;
        if (shadowOf(node)) yield* texts(shadowOf(node));
        yield* texts(node);
      }
    }
  }

  function visibleText(most) {
    let text = "";
    let last = {};
    const range = document.createRange();
    for (const node of texts(bodyOf(document))) {
      if (node.nodeType === Node.ELEMENT_NODE) {
        text += "\n";
        continue;
      }
      const parent = outside(node);
      const keepsLines = /^(pre|break)/.test(getComputedStyle(parent).whiteSpace);
      const words = node.data.replace(keepsLines ? /[^\S\n]+/g : /\s+/g, " ");
      if (words === " ") {
        text += text ? " " : "";
        continue;
      }
      range.selectNodeContents(node);
      const box = range.getBoundingClientRect();
      if (box.bottom <= 0 || (box.width === 0 && box.height === 0)) continue;
      const now = placeOf(parent);
      text += separator(last, now) + words;
      last = now;
      if (text.length > most) break;
    }
    const neat = text.replace(/ *\n */g, "\n").replace(/\n{3,}/g, "\n\n").replace(/ {2,}/g, " ").trim();
    return {text: neat.slice(0, most), is_cut: text.length > most};
  }

  function observe(mostChars, mostElements) {
    const body = bodyOf(document);
    const all = body ? [...inside(body)] : [];
    const found = all.filter((element) => kind(element) && hasSize(element));
    const below = found.filter((element) => element.getBoundingClientRect().bottom > 0);
    numbered = below.slice(0, mostElements);
    const text = body ? visibleText(mostChars) : {text: "", is_cut: false};
    const page = scrollerOf(document) ?? document.documentElement;
    return {
      title: clean(titleOf(document), 200), url: location.href.slice(0, 2000), ...text,
      elements: numbered.map(describe), elements_left_out: below.length - numbered.length,
      screens_above: scrollY / innerHeight,
      screens_below: Math.max(0, page.scrollHeight - innerHeight - scrollY) / innerHeight,
    };
  }

  // Returns the element, or what is wrong.
  function get(number) {
    const element = numbered[number - 1];
    if (!element) return {problem: `there is no element ${number} in the list`};
    if (!element.isConnected) return {problem: `element ${number} is gone from the page`};
    if (element.disabled) return {problem: `element ${number} is disabled`};
    return {element};
  }

  function point(number) {
    const {element, problem} = get(number);
    if (problem) return {problem};
    element.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
    const box = [...element.getClientRects()].find((rect) => rect.width > 0 && rect.height > 0);
    if (!box) return {problem: `element ${number} is not visible any more`};
    const x = Math.min(Math.max((box.left + box.right) / 2, 0), innerWidth - 1);
    const y = Math.min(Math.max((box.top + box.bottom) / 2, 0), innerHeight - 1);
    let hit = document.elementFromPoint(x, y);
    while (hit?.shadowRoot?.elementFromPoint(x, y) && hit.shadowRoot.elementFromPoint(x, y) !== hit) {
      hit = hit.shadowRoot.elementFromPoint(x, y);
    }
    const isLabel = [...(element.labels ?? [])].some((item) => item.contains(hit));
    const isHit = hit && (element.contains(hit) || hit.contains(element) || isLabel
      || element.shadowRoot?.contains(hit));
    if (!isHit) {
      const cover = clean(hit?.innerText, 60) || hit?.localName || "nothing that can be clicked";
      return {problem: `element ${number} is covered by something else (${cover}); deal with that first`};
    }
    return {x, y};
  }

  function setValue(element, text) {
    const prototype = Object.getPrototypeOf(element);
    Object.getOwnPropertyDescriptor(prototype, "value").set.call(element, text);
    element.dispatchEvent(new Event("input", {bubbles: true, composed: true}));
    element.dispatchEvent(new Event("change", {bubbles: true}));
  }

  // Readies an element for typing; `is_done` says that its value is already set.
  function ready(number, text) {
    const {element, problem} = get(number);
    if (problem) return {problem};
    const isInput = element.localName === "input";
    const isField = (isInput && !NOT_TYPED.test(element.type)) || element.localName === "textarea";
    if (!isField && !element.isContentEditable) {
      return {problem: `element ${number} takes no text (it is a ${kind(element)})`};
    }
    if (element.readOnly) return {problem: `element ${number} cannot be changed`};
    element.scrollIntoView({block: "center", behavior: "instant"});
    element.focus();
    if (isInput && TYPED_BY_VALUE.test(element.type)) {
      setValue(element, text);
      if (text && element.value !== text) {
        return {problem: `element ${number} (${element.type}) does not take ${clean(text)}`};
      }
      return {is_done: true};
    }
    if (isField) element.select();
    else getSelection().selectAllChildren(element);
    return {is_done: false};
  }

  function select(number, wanted) {
    const {element, problem} = get(number);
    if (problem) return {problem};
    if (element.localName !== "select") return {problem: `element ${number} is no list to select from`};
    const options = [...element.options];
    const low = wanted.trim().toLowerCase();
    const option = options.find((item) => item.label === wanted || item.value === wanted)
      ?? options.find((item) => item.label.trim().toLowerCase() === low)
      ?? options.find((item) => item.value.trim().toLowerCase() === low);
    if (!option) {
      const known = options.slice(0, OPTION_COUNT).map((item) => clean(item.label, 60)).join("; ");
      return {problem: `element ${number} has no option ${clean(wanted)}; it has: ${known}`};
    }
    if (option.disabled) return {problem: `the option ${clean(wanted)} is disabled`};
    if (!element.multiple) element.selectedIndex = option.index;
    option.selected = true;
    element.dispatchEvent(new Event("input", {bubbles: true, composed: true}));
    element.dispatchEvent(new Event("change", {bubbles: true}));
    return {};
  }

  function scroll(direction) {
    const step = 0.8 * innerHeight * direction;
    let at = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
    const page = scrollerOf(document) ?? document.documentElement;
    const chain = [];
    for (; at; at = outside(at)) {
      if (/auto|scroll/.test(getComputedStyle(at).overflowY)) chain.push(at);
    }
    for (const area of [...chain, page]) {
      const before = area.scrollTop;
      area.scrollBy({top: step, behavior: "instant"});
      if (area.scrollTop !== before) return {};
    }
    return {problem: direction > 0 ? "the page ends here" : "this is the top of the page"};
  }

  // Waits until the document has not changed for a moment, or changes all the time.
  function quiet(momentMs, mostMs) {
    return new Promise((resolve) => {
      let timer;
      const end = () => { observer.disconnect(); clearTimeout(timer); clearTimeout(limit); resolve({}); };
      const again = () => { clearTimeout(timer); timer = setTimeout(end, momentMs); };
      const observer = new MutationObserver(again);
      const limit = setTimeout(end, mostMs);
      observer.observe(document, {subtree: true, childList: true, characterData: true});
      again();
    });
  }

  return {observe, point, ready, select, scroll, quiet};
})()
