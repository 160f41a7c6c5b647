import { isDeepStrictEqual } from "node:util";
import { type Case, type ClientScript, type ExchangeScript, PLAIN } from "./case.js";

/** A case as a script that can be read: of each part what is not as usual. */
export function describe({ clients, together, reloads }: Case): string {
  const order = together ? "at the same time" : "one after the other";
  const who = clients.length === 1 ? "one client" : `${clients.length} clients, ${order}`;
  return [`${who}${reloads ? ", during a reload" : ""}`, ...clients.flatMap(describeClient)].join("\n");
}

const describeClient = ({ protocol, exchanges, ...client }: ClientScript, c: number): string[] => [
  `client ${c}: ${[protocol, ...unusual(client, PLAIN.client)].join("; ")}`,
  ...exchanges.flatMap(describeExchange),
];

function describeExchange(exchange: ExchangeScript, e: number): string[] {
  const { method, answer, body, tunnel, ...more } = exchange;
  const { status, ...rest } = answer;
  const sent = body === undefined ? [] : [`body of ${unusual(body, PLAIN.body).join(", ")}`];
  const tunnelled = exchange.upgrade ? unusual({ tunnel }, {}) : [];
  return [
    `  request ${e}: ${[method, ...unusual(more, PLAIN.exchange), ...sent, ...tunnelled].join("; ")}`,
    `  answer ${e}: ${[status, ...unusual(rest, PLAIN.answer)].join("; ")}`,
  ];
}

const unusual = (value: object, plain: Readonly<Record<string, unknown>>): string[] =>
  Object.entries(value)
    .filter(([name, one]) => !isDeepStrictEqual(one, plain[name]))
    .map(([name, one]) => `${name} ${typeof one === "string" ? one : JSON.stringify(one)}`);
