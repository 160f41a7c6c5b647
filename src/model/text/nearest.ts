/** The known word that was probably meant: a few edits away, or with a different ending; undefined if there is none. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const ranked = known.map((k) => ({ k, distance: editDistance(word.toLowerCase(), k.toLowerCase()) }));
  const near = ranked.filter((one) => isNear(word, one));
  return near.sort((a, b) => a.distance - b.distance)[0]?.k;
}

/** Two edits leave hardly anything of a short word: `host` is not `port`. */
function isNear(word: string, { k, distance }: { readonly k: string; readonly distance: number }): boolean {
  const [a, b] = [word.toLowerCase(), k.toLowerCase()];
  const extended = Math.min(a.length, b.length) >= 3 && (a.startsWith(b) || b.startsWith(a));
  return distance <= Math.max(1, word.length / 3) || (extended && distance <= 6);
}

/** Edits that turn one word into the other; two letters that changed places are one edit. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = [0, ...Array.from(b, (_, j) => j + 1)];
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Infinity;
      next.push(Math.min(replaced, swapped, row[j]! + 1, next[j - 1]! + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
