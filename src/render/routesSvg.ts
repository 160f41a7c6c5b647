import type { GraphNode, RoutesGraph } from "./routesGraph.js";

/**
 * The graph as a picture of its own: columns from left to right, lines between them, no script and nothing from elsewhere.
 * Colours follow what the reader's system asks for; screen readers get the title and a description in words.
 */
export function routesSvg(graph: RoutesGraph): string {
  const { boxes, headings, width, height } = layout(graph);
  const byId = new Map(boxes.map((box) => [box.node.id, box]));
  const edges = graph.edges.map(
    ({ from, to }) => `<path class="edge" d="${curve(byId.get(from)!, byId.get(to)!)}"/>`,
  );
  const title = "What is reachable, and where it leads";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="routes-title routes-text">`,
    `<title id="routes-title">${title}</title>`,
    `<desc id="routes-text">${escaped(inWords(graph))}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect class="ground" width="${width}" height="${height}" rx="8"/>`,
    ...headings.map(
      ({ x, text }) => `<text class="heading" x="${x}" y="${TOP - 16}">${escaped(text)}</text>`,
    ),
    ...edges,
    ...boxes.map(drawn),
    "</svg>",
    "",
  ].join("\n");
}

const STYLE = [
  "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1c2530}",
  ".ground{fill:#fff}.heading{font-weight:bold;fill:#51606f}.more{fill:#51606f}",
  ".edge{fill:none;stroke:#8a99a8;stroke-width:1.5}",
  ".box{stroke-width:1.5}",
  ".listener{fill:#e8f1fd;stroke:#2f6fc0}.server{fill:#efeafd;stroke:#6d4fc4}",
  ".route{fill:#f4f6f8;stroke:#7a8896}.upstream{fill:#e5f6ec;stroke:#23864a}.answer{fill:#fdf3e0;stroke:#a8731a}",
  "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#10161d}.heading,.more{fill:#9fb0c0}",
  ".edge{stroke:#5d6c7b}.listener{fill:#12294a;stroke:#5c9bec}.server{fill:#261d47;stroke:#9d85ee}",
  ".route{fill:#1c242d;stroke:#7a8896}.upstream{fill:#10331f;stroke:#4cc27c}.answer{fill:#3a2a0c;stroke:#d9a441}}",
].join("");

const [TOP, MARGIN, GAP_X, GAP_Y, LINE, PAD] = [52, 24, 64, 14, 17, 10];
/** Width of a character of 12 px, a little more than monospaced fonts have. */
const CHARACTER = 7.4;
/** A longer text is cut, and is whole in the box's own title. */
const CHARACTERS_MAX = 46;

interface Box {
  readonly node: GraphNode;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface Layout {
  readonly boxes: readonly Box[];
  readonly headings: readonly { readonly x: number; readonly text: string }[];
  readonly width: number;
  readonly height: number;
}

/** Routes stand one below the other; everything else stands beside the middle of what it is connected to. */
function layout({ columns, edges }: RoutesGraph): Layout {
  const centres = new Map<string, number>();
  const tops = new Map<string, number>();
  const place = (nodes: readonly GraphNode[], neighbours: (id: string) => readonly string[]): void => {
    const wanted = nodes.map((node, i) => ({
      node,
      i,
      centre: mean(neighbours(node.id).map((id) => centres.get(id)!)),
    }));
    wanted.sort((a, b) => a.centre - b.centre || a.i - b.i);
    let next = TOP;
    for (const { node, centre } of wanted) {
      const top = Math.max(next, Math.round(centre - heightOf(node) / 2));
      tops.set(node.id, top);
      centres.set(node.id, top + heightOf(node) / 2);
      next = top + heightOf(node) + GAP_Y;
    }
  };
  const [listeners, servers, routes, ...goals] = columns.map(({ nodes }) => nodes);
  place(routes!, () => []);
  const after = (id: string): string[] => edges.filter(({ from }) => from === id).map(({ to }) => to);
  const before = (id: string): string[] => edges.filter(({ to }) => to === id).map(({ from }) => from);
  place(servers!, after);
  place(listeners!, after);
  for (const column of goals) place(column, before);
  let x = MARGIN;
  const headings: { x: number; text: string }[] = [];
  const boxes = columns.flatMap(({ title, nodes }) => {
    const width =
      Math.ceil(Math.max(...[title, ...nodes.flatMap(({ lines }) => lines)].map(widthOf))) + 2 * PAD;
    const column = nodes.map((node) => ({ node, x, y: tops.get(node.id)!, width, height: heightOf(node) }));
    headings.push({ x, text: title });
    x += width + GAP_X;
    return column;
  });
  const height = Math.max(...boxes.map((box) => box.y + box.height)) + MARGIN;
  return { boxes, headings, width: x - GAP_X + MARGIN, height };
}

/** The middle of neighbours; of none, as high as there is room. */
const mean = (centres: readonly number[]): number =>
  centres.length === 0 ? 0 : centres.reduce((sum, centre) => sum + centre, 0) / centres.length;

const heightOf = ({ lines }: GraphNode): number => lines.length * LINE + PAD;

/** What a text takes; a character beyond Latin, Greek and Cyrillic script is twice as wide. */
const widthOf = (text: string): number =>
  [...cut(text)].reduce(
    (sum, character) => sum + CHARACTER * (character.codePointAt(0)! > 0x2e7f ? 2 : 1),
    0,
  );

function cut(text: string): string {
  const characters = [...text];
  return characters.length > CHARACTERS_MAX ? `${characters.slice(0, CHARACTERS_MAX - 1).join("")}…` : text;
}

function curve(from: Box, to: Box): string {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [to.x, to.y + to.height / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}

function drawn({ node, x, y, width, height }: Box): string {
  const round = node.kind === "listener" ? 12 : 4;
  const lines = node.lines.map((line, i) => {
    const style = i === 0 || node.kind === "server" ? "" : ' class="more"';
    return `<text${style} x="${x + PAD}" y="${y + PAD / 2 + 13 + i * LINE}">${escaped(cut(line))}</text>`;
  });
  const box = `<rect class="box ${node.kind}" x="${x}" y="${y}" width="${width}" height="${height}" rx="${round}"/>`;
  return `<g><title>${escaped(node.lines.join(", "))}</title>${box}${lines.join("")}</g>`;
}

function inWords({ columns, edges }: RoutesGraph): string {
  const names = new Map(columns.flatMap(({ nodes }) => nodes.map(({ id, lines }) => [id, lines.join(", ")])));
  return edges.map(({ from, to }) => `${names.get(from)} leads to ${names.get(to)}.`).join(" ");
}

/** XML's own characters by name, and what XML cannot have left out (XML 1.0, 2.2). */
const escaped = (text: string): string =>
  text
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "")
    .replace(
      /[&<>"]/g,
      (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[character]!,
    );
