/** Elements as plain values, and a keyed patch that makes the document equal to them. */

const SVG = 'http://www.w3.org/2000/svg';
const PROPERTIES = new Set(['value', 'checked', 'disabled', 'hidden', 'open', 'indeterminate', 'inert']);
const RESERVED = new Set(['key', 'mount', 'update', 'style']);

/**
 * Describe an element. `props` are attributes, `onclick` and the like, and
 * `key` (identity among siblings), `style` (CSS properties by name), `mount` (called with the new
 * element; may return a function that is called when it goes), `update` (called after each patch).
 */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, key: props?.key, children: flat(children, '', []), dom: null };
}

/** Describe a part that is built again only when one of `deps` is another value. */
export function memo(key, deps, build) {
  return { tag: 'memo', key, deps, build, inner: null, dom: null };
}

/** A child without a key is known by its place among the arguments, also when others come and go. */
function flat(children, above, out) {
  children.forEach((child, at) => {
    const slot = `${above}${at}`;
    if (Array.isArray(child)) flat(child, `${slot}.`, out);
    else if (child === null || child === undefined || child === false || child === true) return;
    else if (typeof child === 'object') out.push(Object.assign(child, { slot }));
    else out.push({ tag: '#text', text: String(child), slot, dom: null });
  });
  return out;
}

/**
 * Describe a part with a state of its own: `view(state, set)` returns its content, and `set` draws
 * it again, without the rest of the page.
 */
export function local(props, initial, view) {
  const mount = (element) => {
    element.localState = initial;
  };
  const update = (element) => {
    element.localView = view;
    drawLocal(element);
  };
  return h('div', { ...props, mount, update });
}

function drawLocal(element) {
  const set = (state) => {
    element.localState = state;
    drawLocal(element);
  };
  render(element, element.localView(element.localState, set));
}

const shown = new WeakMap();

const arrived = []; // functions for new elements, called once these are in the document
let depth = 0;

/** Make the children of an element equal to these. */
export function render(parent, ...children) {
  const next = flat(children, '', []);
  const before = shown.get(parent);
  if (!before) parent.replaceChildren();
  depth += 1;
  patchChildren(parent, before ?? [], next, parent.namespaceURI === SVG);
  depth -= 1;
  shown.set(parent, next);
  while (depth === 0 && arrived.length) arrived.shift()();
}

function create(node, isSvg) {
  if (node.tag === '#text') return (node.dom = document.createTextNode(node.text));
  if (node.tag === 'memo') {
    node.inner = node.build();
    return (node.dom = create(node.inner, isSvg));
  }
  const svg = isSvg || node.tag === 'svg';
  const element = svg ? document.createElementNS(SVG, node.tag) : document.createElement(node.tag);
  node.dom = element;
  for (const [name, value] of Object.entries(node.props)) setProp(element, name, value, undefined);
  for (const child of node.children) element.append(create(child, svg));
  if (node.props.mount || node.props.update) arrived.push(() => arrive(node, element));
  return element;
}

function arrive(node, element) {
  const left = node.props.mount?.(element);
  node.leave = typeof left === 'function' ? left : null;
  node.props.update?.(element);
}

function patch(before, next, isSvg) {
  next.dom = before.dom;
  if (next.tag === '#text') return patchText(before, next);
  if (next.tag === 'memo') return patchMemo(before, next, isSvg);
  const element = next.dom;
  for (const name of Object.keys(before.props)) {
    if (!(name in next.props)) setProp(element, name, undefined, before.props[name]);
  }
  for (const [name, value] of Object.entries(next.props)) {
    if (value !== before.props[name] || PROPERTIES.has(name)) {
      setProp(element, name, value, before.props[name]);
    }
  }
  patchChildren(element, before.children, next.children, isSvg || next.tag === 'svg');
  next.leave = before.leave;
  next.props.update?.(element);
}

function patchText(before, next) {
  if (before.text === next.text) return;
  if (next.text.startsWith(before.text)) next.dom.appendData(next.text.slice(before.text.length));
  else next.dom.nodeValue = next.text;
}

function patchMemo(before, next, isSvg) {
  const same = before.deps.length === next.deps.length && before.deps.every((one, i) => Object.is(one, next.deps[i]));
  if (same) {
    next.inner = before.inner;
    return;
  }
  next.inner = next.build();
  if (matches(before.inner, next.inner)) patch(before.inner, next.inner, isSvg);
  else {
    const made = create(next.inner, isSvg);
    before.dom.replaceWith(made);
    leave(before.inner);
  }
  next.dom = next.inner.dom;
}

/** Whether an element is kept: what `mount` began in it goes on, so one without `mount` cannot have it. */
function matches(before, next) {
  return before.tag === next.tag && before.key === next.key && !before.props?.mount === !next.props?.mount;
}

function identity(node) {
  return node.key === undefined || node.key === null ? `#${node.slot}` : `=${node.key}`;
}

function patchChildren(parent, before, next, isSvg) {
  const known = new Map(before.map((old) => [identity(old), old]));
  const pairs = next.map((node) => {
    const old = known.get(identity(node));
    known.delete(identity(node));
    return old && matches(old, node) ? [node, old, null] : [node, null, old];
  });
  for (const old of [...known.values(), ...pairs.map((pair) => pair[2])]) {
    if (old) remove(old);
  }
  let at = parent.firstChild;
  for (const [node, old] of pairs) {
    if (old) patch(old, node, isSvg);
    else create(node, isSvg);
    if (node.dom === at) at = at.nextSibling;
    else parent.insertBefore(node.dom, at);
  }
}

function remove(node) {
  leave(node);
  node.dom.remove();
}

function leave(node) {
  if (node.tag === '#text') return;
  if (node.tag === 'memo') return leave(node.inner);
  node.leave?.();
  node.children.forEach(leave);
  shown.get(node.dom)?.forEach(leave);
}

function setProp(element, name, value, before) {
  if (name === 'style') return setStyle(element, value ?? {}, before ?? {});
  if (RESERVED.has(name)) return;
  if (name.startsWith('on')) return setHandler(element, name.slice(2), value);
  if (PROPERTIES.has(name)) {
    const wanted = value ?? (name === 'value' ? '' : false);
    if (element[name] !== wanted) element[name] = wanted;
    return;
  }
  if (value === undefined || value === null || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? '' : String(value));
}

function setStyle(element, value, before) {
  for (const name of Object.keys(before)) if (!(name in value)) element.style.removeProperty(name);
  for (const [name, one] of Object.entries(value)) {
    if (before[name] !== one) element.style.setProperty(name, String(one));
  }
}

function setHandler(element, kind, handler) {
  const handlers = (element.handlers ??= {});
  if (!(kind in handlers)) element.addEventListener(kind, (event) => element.handlers[kind]?.(event));
  handlers[kind] = handler;
}
