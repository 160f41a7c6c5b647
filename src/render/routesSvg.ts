import { type Box, curve, cut, layout, LINE, PAD, TOP } from "../model/review/graphLayout.js";
import type { RoutesGraph } from "../model/review/routesGraph.js";

/**
 * The graph as a standalone picture: columns from left to right, lines between them, no script and no external
 * resources. Colours follow the reader's system setting; screen readers get the title and a description in words.
 */
export function routesSvg(graph: RoutesGraph): string {
  const { boxes, headings, width, height } = layout(graph);
  const byId = new Map(boxes.map((box) => [box.node.id, box]));
  const edges = graph.edges.map(
    ({ from, to }) => `<path class="edge" d="${curve(byId.get(from)!, byId.get(to)!)}"/>`,
  );
  const title = "Reachable routes and their destinations";
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
  ".route{fill:#f4f6f8;stroke:#7a8896}.upstream{fill:#e5f6ec;stroke:#23864a}.response{fill:#fdf3e0;stroke:#a8731a}",
  "@media (prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#10161d}.heading,.more{fill:#9fb0c0}",
  ".edge{stroke:#5d6c7b}.listener{fill:#12294a;stroke:#5c9bec}.server{fill:#261d47;stroke:#9d85ee}",
  ".route{fill:#1c242d;stroke:#7a8896}.upstream{fill:#10331f;stroke:#4cc27c}.response{fill:#3a2a0c;stroke:#d9a441}}",
].join("");

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

/** Escapes XML's special characters, and removes characters that XML does not allow (XML 1.0, 2.2). */
const escaped = (text: string): string =>
  text
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "")
    .replace(
      /[&<>"]/g,
      (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[character]!,
    );
