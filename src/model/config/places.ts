import { configNode, type SchemaNode, variants } from "./schema.js";

/** The objects of a config, in words: `a route`, `limits` of the proxy. So a message can say where a field belongs. */
export interface Place {
  readonly words: string;
  readonly names: readonly string[];
  /** The object that contains this one as its field `step`; none for items of lists and for actions. */
  readonly within?: { readonly place: Place; readonly step: string };
}

/** Items of lists. */
const ITEMS: Readonly<Record<string, string>> = {
  certificateAuthorities: "a certificate authority",
  certificates: "a further certificate of a listener",
  errorPages: "an error page",
  listeners: "a listener",
  routes: "a route",
  servers: "a server of an upstream",
  targets: "a target of notifications",
  upstreams: "an upstream",
  virtualServers: "a virtual server",
};

let known: readonly Place[] | undefined;

/** Every object of a config. */
export function places(): readonly Place[] {
  known ??= placesOf(configNode(), "the proxy");
  return known;
}

function placesOf(node: SchemaNode, words: string, within?: Place["within"]): Place[] {
  const { properties = {} } = node;
  const place: Place = { words, names: Object.keys(properties), within };
  return [place, ...Object.entries(properties).flatMap(([step, field]) => placesIn(field, step, place))];
}

function placesIn(field: SchemaNode, step: string, place: Place): Place[] {
  return variants([field]).flatMap((one) => {
    if (one.items !== undefined)
      return variants([one.items]).flatMap((item) =>
        item.properties === undefined ? [] : placesOf(item, ITEMS[step] ?? `an item of \`${step}\``),
      );
    if (one.properties === undefined) return [];
    if (step === "action") return placesOf(one, `a \`${String(one.properties.type!.const)}\` action`);
    return placesOf(one, `\`${step}\` of ${place.words}`, { place, step });
  });
}
