import type { GraphNode, RoutesGraph } from "./routesGraph.js";

/** Distances in pixels, of text of 12 px. */
export const [TOP, MARGIN, GAP_X, GAP_Y, LINE, PAD] = [52, 24, 64, 14, 17, 10];
/** Width of a character of 12 px, a little more than monospaced fonts have. */
const CHARACTER = 7.4;
/** A longer text is cut, and is whole in the box's own title. */
const CHARACTERS_MAX = 46;

/** The place of a node in the drawing. */
export interface Box {
  readonly node: GraphNode;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A graph to be laid out; columns from left to right, the routes in the third. */
export interface Drawable {
  readonly columns: RoutesGraph["columns"];
  readonly edges: readonly { readonly from: string; readonly to: string }[];
}

export interface Layout {
  readonly boxes: readonly Box[];
  readonly headings: readonly { readonly x: number; readonly text: string }[];
  readonly width: number;
  readonly height: number;
}

/** Routes stand one below the other; every other box stands beside the middle of the boxes that it is connected to. */
export function layout({ columns, edges }: Drawable): Layout {
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

/** The width of a text; a character beyond Latin, Greek and Cyrillic script is twice as wide. */
const widthOf = (text: string): number =>
  [...cut(text)].reduce(
    (sum, character) => sum + CHARACTER * (character.codePointAt(0)! > 0x2e7f ? 2 : 1),
    0,
  );

/** A text as it fits into a box. */
export function cut(text: string): string {
  const characters = [...text];
  return characters.length > CHARACTERS_MAX ? `${characters.slice(0, CHARACTERS_MAX - 1).join("")}…` : text;
}

/** The path of a line from one box to another. */
export function curve(from: Box, to: Box): string {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [to.x, to.y + to.height / 2];
  const middle = (x1 + x2) / 2;
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`;
}
