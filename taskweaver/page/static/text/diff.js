/** Differences of two texts by lines. */

const MOST_LINES = 2_000;
const CONTEXT = 2;

/** Return the changes from one text to another as a unified diff without a head. */
export function lineDiff(before, after) {
  const [one, two] = [before.split('\n'), after.split('\n')];
  if (one.length > MOST_LINES || two.length > MOST_LINES) return `- ${one.length} lines\n+ ${two.length} lines`;
  return shortened(edits(one, two)).join('\n');
}

function edits(one, two) {
  const rows = one.length + 1;
  const common = Array.from({ length: rows }, () => new Uint16Array(two.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = two.length - 1; j >= 0; j -= 1) {
      common[i][j] = one[i] === two[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const out = [];
  let [i, j] = [0, 0];
  while (i < one.length || j < two.length) {
    if (i < one.length && j < two.length && one[i] === two[j]) {
      out.push(`  ${one[i]}`);
      i += 1;
      j += 1;
    } else if (i < one.length && (j === two.length || common[i + 1][j] >= common[i][j + 1])) {
      out.push(`- ${one[i]}`);
      i += 1;
    } else {
      out.push(`+ ${two[j]}`);
      j += 1;
    }
  }
  return out;
}

function shortened(lines) {
  const isNear = lines.map((_, at) => lines.slice(Math.max(0, at - CONTEXT), at + CONTEXT + 1).some((line) => line[0] !== ' '));
  return lines.flatMap((line, at) => {
    if (isNear[at]) return [line];
    return at > 0 && isNear[at - 1] ? ['@@'] : [];
  });
}
