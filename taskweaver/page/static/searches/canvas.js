/** Large trees on a canvas: drawn once for each change of view, moved by the browser while panning. */

import { h } from '../core/dom.js';

const STEP_X = 14;
const STEP_Y = 40;
const MARGIN = 20;
const TILE = 512;
const NEAR = 12;

/** Return the tree on tiles of a canvas; readers use the list. */
export function canvasTree(placed, chosen, choose) {
  const width = placed.width * STEP_X + 2 * MARGIN;
  const height = placed.height * STEP_Y + 2 * MARGIN;
  const onclick = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const found = nearest(placed, event.clientX - box.left, event.clientY - box.top);
    if (found) choose(found.node);
  };
  const node = placed.byId.get(chosen);
  return h('div', { key: 'canvas', class: 'canvas-tree', 'aria-hidden': 'true', onclick, style: { width: `${width}px`, height: `${height}px` }, mount: (element) => watchTiles(element), update: (element) => place(element, placed, width, height) },
    node ? h('span', { class: 'canvas-ring', style: { left: `${px(node)}px`, top: `${py(node)}px` } }) : null);
}

const px = (node) => MARGIN + (node.x + 0.5) * STEP_X;
const py = (node) => MARGIN + (node.y + 0.5) * STEP_Y;

function nearest(placed, x, y) {
  let best = null;
  let least = NEAR * NEAR;
  for (const node of placed.nodes) {
    const away = (px(node) - x) ** 2 + (py(node) - y) ** 2;
    if (away < least) [best, least] = [node, away];
  }
  return best;
}

function watchTiles(element) {
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting && !target.isDrawn) drawTile(element.placed, target);
  }, { rootMargin: '512px' });
  element.observer = observer;
  return () => observer.disconnect();
}

function place(element, placed, width, height) {
  if (element.placed === placed) return;
  element.placed = placed;
  for (const tile of element.querySelectorAll('canvas')) tile.remove();
  for (let top = 0; top < height; top += TILE) {
    for (let left = 0; left < width; left += TILE) {
      const tile = document.createElement('canvas');
      [tile.width, tile.height] = [TILE, TILE];
      tile.style.left = `${left}px`;
      tile.style.top = `${top}px`;
      Object.assign(tile, { at: [left, top], isDrawn: false });
      element.append(tile);
      element.observer.observe(tile);
    }
  }
}

function drawTile(placed, tile) {
  tile.isDrawn = true;
  const [left, top] = tile.at;
  const style = getComputedStyle(tile);
  // Properties of the theme are resolved where they are used as colours, as the style sheet does.
  const colours = { line: style.outlineColor, value: style.color, failed: style.caretColor };
  const context = tile.getContext('2d');
  context.translate(-left, -top);
  const near = placed.nodes.filter((node) => {
    const parent = placed.byId.get(node.parent) ?? node;
    return Math.min(px(node), px(parent)) < left + TILE + 9 && Math.max(px(node), px(parent)) > left - 9 && py(parent) < top + TILE + 9 && py(node) > top - 9;
  });
  for (const node of near) line(context, node, placed.byId.get(node.parent), colours);
  for (const node of near) dot(context, node, colours);
}

function line(context, node, parent, colours) {
  if (!parent) return;
  context.beginPath();
  context.strokeStyle = node.isOnWay ? colours.value : colours.line;
  context.lineWidth = node.isOnWay ? 2.5 : 0.7;
  context.moveTo(px(parent), py(parent));
  const middle = (py(parent) + py(node)) / 2;
  context.bezierCurveTo(px(parent), middle, px(node), middle, px(node), py(node));
  context.stroke();
}

function dot(context, node, colours) {
  context.beginPath();
  if (node.isFailed) {
    context.strokeStyle = colours.failed;
    context.lineWidth = 1.5;
    context.moveTo(px(node) - 3, py(node) - 3);
    context.lineTo(px(node) + 3, py(node) + 3);
    context.moveTo(px(node) + 3, py(node) - 3);
    context.lineTo(px(node) - 3, py(node) + 3);
    context.stroke();
    return;
  }
  context.globalAlpha = 0.35 + 0.65 * (node.fill ?? 0);
  context.fillStyle = colours.value;
  context.arc(px(node), py(node), 3 + 2 * (node.fill ?? 0), 0, 7);
  context.fill();
  context.globalAlpha = 1;
}
