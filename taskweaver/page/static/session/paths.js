/** The tree of a session: which rounds a branch sees, and where it was forked. */

import { seen } from '../core/words.js';

const COLOURS = 6;

/**
 * Return the tree of branches and rounds: for each branch its own rounds, its parent, the round it
 * was forked at (0 for the beginning), the merges into it, and its colour, which is given by the
 * order of creation. The title of a branch is shown in place of its name.
 */
export function treeOf(branches, index, merges = []) {
  const nodes = new Map(branches.map((branch, at) => [branch.name, {
    name: branch.name, title: branch.title ?? branch.name, parent: branch.parent, state: branch.state, own: [], forkedAt: 0, children: [], merges: merges.filter((merge) => merge.branch === branch.name),
    colour: at === 0 ? 0 : ((at - 1) % COLOURS) + 1,
  }]));
  for (const round of index) nodes.get(round.branch)?.own.push(round);
  for (const round of index) {
    for (const fork of round.forks) {
      const node = nodes.get(fork);
      if (node) node.forkedAt = round.number;
    }
  }
  for (const node of nodes.values()) {
    node.own.sort((a, b) => a.number - b.number);
    if (node.parent && nodes.has(node.parent)) nodes.get(node.parent).children.push(node);
  }
  return nodes;
}

/** Return the name of a branch as it is shown. */
export function titled(session, name) {
  return seen(session.tree.get(name)?.title ?? name);
}

/** Return the rounds that a branch sees, from the first; the number of each is its place. */
export function pathOf(tree, name) {
  const node = tree.get(name);
  if (!node) return [];
  const above = node.parent && node.parent !== name ? pathOf(tree, node.parent).slice(0, node.forkedAt) : [];
  return [...above, ...node.own];
}

/** Return the steps from the root to a moment: `[{branch, round}]`, the last one is here. */
export function stepsTo(tree, name, number) {
  const steps = [{ branch: name, round: number }];
  for (let node = tree.get(name); node?.parent; node = tree.get(node.parent)) {
    steps.unshift({ branch: node.parent, round: node.forkedAt });
  }
  return steps;
}

/** Return the branch on which round `number` of a path was asked. */
export function ownerOf(tree, name, number) {
  let node = tree.get(name);
  while (node?.parent && number <= node.forkedAt) node = tree.get(node.parent);
  return node?.name ?? name;
}

/**
 * Return the rows of the outline in tree order. A fork stands below the round it was made from; a
 * branch that goes on after an open fork has a row that says so.
 */
export function outlineRows(tree, folded, here) {
  const root = [...tree.values()].find((node) => !node.parent);
  if (!root) return [];
  const onPath = new Map(stepsTo(tree, here.branch, here.number).map((step) => [step.branch, step.round]));
  const rows = [];
  // A fork in which nothing was asked yet has no round: its own row is the place.
  const isAtFork = !here.isPast && !tree.get(here.branch)?.own.length;
  const place = isAtFork ? { fork: here.branch } : { branch: ownerOf(tree, here.branch, here.number), number: here.number };
  addBranch({ tree, folded, onPath, place, rows }, root, 0, [], '');
  return rows;
}

function addBranch(work, node, depth, lines, note) {
  const { folded, onPath, place, rows } = work;
  const isFolded = folded(node.name);
  const reach = onPath.get(node.name) ?? -1;
  const base = { branch: node.name, colour: node.colour, depth, lines, isOnPath: reach >= 0 };
  rows.push({ ...base, kind: 'branch', key: `b:${node.name}`, isFolded, note, state: node.state, rounds: node.own.length, isForked: Boolean(node.parent), isHere: place.fork === node.name, hasRows: node.own.length + node.children.length > 0 });
  if (isFolded) return;
  const forks = (number) => node.children.filter((child) => child.forkedAt === number);
  const isBeforeOwn = node.children.filter((child) => child.forkedAt < (node.own[0]?.number ?? Infinity));
  const first = node.own[0]?.number ?? Infinity;
  addMerges(rows, base, node.merges.filter((merge) => merge.number < first), reach, node.own.length + isBeforeOwn.length === 0);
  let isOpenAbove = addForks(work, node, isBeforeOwn, depth, lines, node.own.length > 0);
  node.own.forEach((round, at) => {
    const isMore = at < node.own.length - 1;
    const merges = node.merges.filter((merge) => merge.number === round.number);
    const isEnd = !isMore && !forks(round.number).length;
    if (isOpenAbove) rows.push({ ...base, kind: 'goes-on', key: `g:${round.round_id}`, number: round.number - 1, isThick: reach >= round.number });
    rows.push({
      ...base, kind: 'round', key: `r:${round.round_id}`, id: round.round_id, number: round.number, title: round.title, state: round.state,
      isOnPath: reach >= round.number, isHere: place.branch === node.name && place.number === round.number,
      isLast: isEnd && !merges.length, isThickBelow: reach > round.number || forks(round.number).some((child) => onPath.has(child.name)),
      forks: forks(round.number).length,
    });
    addMerges(rows, base, merges, reach, isEnd);
    isOpenAbove = addForks(work, node, forks(round.number), depth, lines, isMore, reach > round.number);
  });
}

/** Add the rows of merges that follow the same round. */
function addMerges(rows, base, merges, reach, isEnd) {
  merges.forEach(({ number, source }, at) => {
    rows.push({
      ...base, kind: 'merge', key: `m:${base.branch}:${number}:${at}`, number, source, title: `Merged ${source}`,
      isOnPath: reach >= number, isThickBelow: reach > number, isLast: isEnd && at === merges.length - 1,
    });
  });
}

function addForks(work, node, forks, depth, lines, goesOn, isThick = false) {
  let isOpen = false;
  forks.forEach((child, at) => {
    const isThickHere = isThick || forks.slice(at + 1).some((other) => work.onPath.has(other.name));
    const line = { depth, colour: node.colour, isOn: goesOn || at < forks.length - 1, isThick: isThickHere };
    const note = isOpen || at > 0 ? `from ${child.forkedAt}` : '';
    addBranch(work, child, depth + 1, [...lines, line], note);
    isOpen ||= !work.folded(child.name);
  });
  return isOpen;
}
