import { markup, type Markup } from "./markup.js";

/** One line of a plot. */
export interface PlotLine {
  readonly name: string;
  /** The oldest first; fewer than the plot has room for are at its right end. */
  readonly values: readonly number[];
}

const [WIDTH, HEIGHT] = [600, 96];

/**
 * Lines over time, the area below the first one filled. It takes the width that it gets; what it says in numbers is beside
 * it, and in `label` for those who do not see it.
 */
export function plot(lines: readonly PlotLine[], periods: number, top: number, label: string): Markup {
  const step = WIDTH / Math.max(1, periods - 1);
  const high = top === 0 ? 1 : top;
  return markup`<svg class="plot" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">
<path class="grid" d="M0 0.5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}"/>
${lines.map(({ values }, i) => {
  const first = WIDTH - (values.length - 1) * step;
  const points = values.map(
    (value, at) => `${rounded(first + at * step)} ${rounded(HEIGHT - 1 - (value / high) * (HEIGHT - 3))}`,
  );
  if (points.length < 2) return undefined;
  const line = `M${points.join("L")}`;
  const area = markup`<path class="area" d="${line}L${WIDTH} ${HEIGHT}L${rounded(first)} ${HEIGHT}Z"/>`;
  return markup`${i === 0 && area}<path class="line line${i + 1}" d="${line}"/>`;
})}
</svg>`;
}

const rounded = (value: number): string => String(Math.round(value * 10) / 10);

/** A round number that no value is above: 1, 2 or 5 and zeros. */
export function roundTop(values: readonly number[]): number {
  const most = Math.max(0, ...values);
  if (most === 0) return 0;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= most * 0.999_999)!;
}
