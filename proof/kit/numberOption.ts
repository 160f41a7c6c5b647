/**
 * A number from the command line.
 *
 * @param option its name, as `--count`
 * @param least whole numbers from this on are taken; undefined: all numbers above 0
 * @throws Error with a text for the user
 */
export function numberOption(option: string, text: string, least: number | undefined = 1): number {
  const value = Number(text);
  const taken =
    least === undefined ? value > 0 && Number.isFinite(value) : Number.isSafeInteger(value) && value >= least;
  if (text.trim() !== "" && taken) return value;
  const allowed = least === undefined ? "a number above 0" : `a whole number from ${least}`;
  throw new Error(`${option} ${text}: give ${allowed}`);
}
