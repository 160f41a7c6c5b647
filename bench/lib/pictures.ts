import { type Line, lineBeside, type Result } from "./judge.js";
import { digits } from "./table.js";

/**
 * Pictures of results, as SVG. The colours suit light and dark surroundings, and each picture says in words what its marks
 * show (`title` and `desc`).
 */

/** File names, and what they hold. */
export function pictures(results: readonly Result[]): ReadonlyMap<string, string> {
  const curves = results.filter(({ axis, lines }) => axis !== undefined && lines.some(isPoint));
  return new Map([
    ["ratios.svg", ratiosPicture(results)],
    ...curves.map((result) => [`${result.name}.svg`, curvePicture(result)] as const),
  ]);
}

/** The proxies that pictures show, in the order of their colours. */
const SHOWN = ["portico", "nginx", "haproxy", "caddy"] as const;
type Shown = (typeof SHOWN)[number];

const STYLE = `<style>
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .faint { fill: #57606a; }
  .grid { stroke: #d0d7de; }
  .one { stroke: #57606a; stroke-dasharray: 4 3; }
  .portico { fill: #0969da; stroke: #0969da; }
  .nginx { fill: #1a7f37; stroke: #1a7f37; }
  .haproxy { fill: #9a6700; stroke: #9a6700; }
  .caddy { fill: #8250df; stroke: #8250df; }
  .line { fill: none; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .faint { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .one { stroke: #9198a1; }
    .portico { fill: #4493f8; stroke: #4493f8; }
    .nginx { fill: #3fb950; stroke: #3fb950; }
    .haproxy { fill: #d29922; stroke: #d29922; }
    .caddy { fill: #ab7df8; stroke: #ab7df8; }
  }
</style>`;

interface Text {
  readonly x: number;
  readonly y: number;
  readonly as?: string;
  readonly anchor?: "start" | "middle" | "end";
}

const text = (words: string, { x, y, as = "", anchor = "start" }: Text): string =>
  `<text x="${round(x)}" y="${round(y)}" class="${as}" text-anchor="${anchor}">${escaped(words)}</text>`;

const escaped = (words: string): string =>
  words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const round = (value: number): string => String(Math.round(value * 10) / 10);

function svg(width: number, height: number, title: string, desc: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title desc">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">${escaped(desc)}</desc>`,
    STYLE,
    text(title, { x: 16, y: 26, as: "title" }),
    ...parts,
    "</svg>\n",
  ].join("\n");
}

/** Positions on an axis whose steps are factors. */
class LogAxis {
  constructor(
    readonly from: number,
    readonly to: number,
    private readonly begin: number,
    private readonly end: number,
  ) {}

  /** What lies beyond the axis is at its edge. */
  at(value: number): number {
    const part = Math.log(value / this.from) / Math.log(this.to / this.from);
    return this.begin + (this.end - this.begin) * Math.min(1, Math.max(0, part));
  }

  /**
   * @param factor from one tick to the next
   * @param between further ticks, as multiples of one
   */
  ticks(factor: number, between: readonly number[] = []): number[] {
    const ticks: number[] = [];
    for (let tick = this.from; tick <= this.to * 1.0001; tick *= factor)
      ticks.push(...[1, ...between].map((times) => tick * times).filter((one) => one <= this.to * 1.0001));
    return ticks;
  }
}

const NAMES_WIDTH = 150;
const WIDTH = 760;
const ROW = 22;
const TOP = 74;

/** How much less, or more, than nginx each item takes: below 1 is less, whatever the unit. */
function ratiosPicture(results: readonly Result[]): string {
  const rows = results.flatMap((result) => {
    const own = result.lines.find(({ family, ratio }) => family === "portico" && ratio !== undefined);
    if (own === undefined || result.axis !== undefined) return [];
    const ratios = new Map(
      SHOWN.filter((name) => name !== "nginx").flatMap((name) => {
        const line = lineBeside(own, name, result.lines);
        return line?.ratio === undefined ? [] : [[name, costRatio(result, line.ratio)] as const];
      }),
    );
    return [{ name: result.name, ratios }];
  });
  const x = new LogAxis(1 / 8, 32, NAMES_WIDTH + 16, WIDTH - 60);
  const bottom = TOP + rows.length * ROW;
  const grid = x.ticks(2).flatMap((tick) => [
    `<line x1="${round(x.at(tick))}" x2="${round(x.at(tick))}" y1="${TOP - 14}" y2="${bottom}" class="${tick === 1 ? "one" : "grid"}"/>`,
    text(tick < 1 ? `1/${1 / tick}` : `${tick} ×`, {
      x: x.at(tick),
      y: bottom + 18,
      as: "faint",
      anchor: "middle",
    }),
  ]);
  const marks = rows.flatMap(({ name, ratios }, i) => {
    const y = TOP + i * ROW;
    const dots = [...ratios].map(
      ([proxy, ratio]) =>
        `<circle cx="${round(x.at(ratio))}" cy="${y}" r="${proxy === "portico" ? 6 : 3.5}" class="${proxy}"/>`,
    );
    const own = digits(ratios.get("portico"));
    return [
      text(name, { x: NAMES_WIDTH, y: y + 4, anchor: "end" }),
      ...dots.reverse(),
      text(own, { x: WIDTH - 12, y: y + 4, anchor: "end" }),
    ];
  });
  const said = rows.map(({ name, ratios }) => `${name} ${digits(ratios.get("portico"))}`).join(", ");
  return svg(
    WIDTH,
    bottom + 48,
    "Cost beside nginx: processor time, time, or memory",
    `Portico's cost divided by nginx's, by item: ${said}.`,
    [
      ...key(["portico", "haproxy", "caddy"], 46),
      ...grid,
      ...marks,
      text("Less than nginx is left of the dashed line. A mark at an edge lies beyond it.", {
        x: NAMES_WIDTH + 16,
        y: bottom + 38,
        as: "faint",
      }),
    ],
  );
}

/** Of an item whose value is a rate, more is less cost. */
const costRatio = ({ unit }: Result, ratio: number): number => (unit.endsWith("/s") ? 1 / ratio : ratio);

function key(names: readonly Shown[], y: number): string[] {
  return names.flatMap((name, i) => [
    `<circle cx="${NAMES_WIDTH + 22 + i * 90}" cy="${y}" r="5" class="${name}"/>`,
    text(name, { x: NAMES_WIDTH + 32 + i * 90, y: y + 4 }),
  ]);
}

const CURVE_HEIGHT = 420;

/** What a request costs over connections, or over the size of its body; both axes are logarithmic. */
function curvePicture({ what, unit, axis, lines }: Result): string {
  const points = lines.filter(isPoint);
  const x = new LogAxis(
    Math.min(...points.map(({ at }) => at)),
    Math.max(...points.map(({ at }) => at)),
    90,
    WIDTH - 40,
  );
  const values = points.map(({ value }) => value);
  const y = new LogAxis(
    powerOf10(Math.min(...values), Math.floor),
    powerOf10(Math.max(...values), Math.ceil),
    CURVE_HEIGHT - 60,
    60,
  );
  const curves = SHOWN.flatMap((name) => {
    const own = points.filter(({ proxy }) => proxy.startsWith(`${name},`));
    if (own.length === 0) return [];
    const path = own.map(({ at, value }) => `${round(x.at(at))},${round(y.at(value))}`);
    return [
      `<polyline points="${path.join(" ")}" class="${name} line"/>`,
      ...own.map(
        ({ at, value }) =>
          `<circle cx="${round(x.at(at))}" cy="${round(y.at(value))}" r="3.5" class="${name}"/>`,
      ),
    ];
  });
  const columns = [...new Set(points.map(({ at }) => at))];
  const grid = [
    ...columns.flatMap((at) => [
      `<line x1="${round(x.at(at))}" x2="${round(x.at(at))}" y1="66" y2="${CURVE_HEIGHT - 60}" class="grid"/>`,
      text(axis === "bytes" ? sizeText(at) : at.toLocaleString("en-US"), {
        x: x.at(at),
        y: CURVE_HEIGHT - 40,
        as: "faint",
        anchor: "middle",
      }),
    ]),
    ...y
      .ticks(10, [2, 5])
      .flatMap((tick) => [
        `<line x1="90" x2="${WIDTH - 40}" y1="${round(y.at(tick))}" y2="${round(y.at(tick))}" class="grid"/>`,
        text(tick.toLocaleString("en-US"), { x: 82, y: y.at(tick) + 4, as: "faint", anchor: "end" }),
      ]),
    text(`${unit}, over ${axis === "bytes" ? "bytes of a body" : "connections"}`, {
      x: WIDTH / 2,
      y: CURVE_HEIGHT - 16,
      as: "faint",
      anchor: "middle",
    }),
  ];
  const said = points.map(({ proxy, value }) => `${proxy} ${digits(value)}`).join("; ");
  return svg(WIDTH, CURVE_HEIGHT, `Cost of a ${what}`, `${unit}: ${said}.`, [
    ...key(SHOWN, 46),
    ...grid,
    ...curves,
  ]);
}

type Point = Line & { readonly at: number; readonly value: number };

const isPoint = (line: Line): line is Point => line.at !== undefined && line.value !== undefined;

const powerOf10 = (value: number, towards: (exponent: number) => number): number =>
  10 ** towards(Math.log10(value));

/** `32 KiB`. */
export function sizeText(bytes: number): string {
  const unit = Math.min(3, Math.floor(Math.log2(bytes) / 10));
  return `${bytes / 2 ** (10 * unit)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
}
