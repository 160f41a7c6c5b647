import { alternate } from "../lib/bench.js";
import { wrk } from "../lib/loads.js";
import { STEP_USER, STEPS } from "../proxies/requestSteps.js";
import type { Work } from "../lib/work.js";

const AUTHORIZATION = `Authorization: Basic ${Buffer.from(`${STEP_USER.name}:${STEP_USER.password}`).toString("base64")}`;

/**
 * What each step costs that may come before a request's action. Shown, not judged: no other proxy has the same steps. The
 * portal is the application, which responds at once, so the last row is the price of the question.
 */
export const requestSteps: Work = {
  name: "request-steps",
  what: "small request, HTTP/1.1, with a step before it: list of addresses, rate, guard, password, portal",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [],
  run: (bench) => {
    const kinds = bench.kinds.filter(({ family }) => family === "portico");
    const variants = Object.fromEntries([
      ["no step", {}],
      ...Object.keys(STEPS).map((step) => [step, { step }]),
    ]);
    const rounds = { mode: "plain", ability: "http1", variants, rounds: ROUNDS } as const;
    return alternate({ ...bench, kinds }, rounds, (proxy) =>
      wrk(bench, proxy, "/sync/small", { headers: [AUTHORIZATION], seconds: 1 }),
    );
  },
};

const ROUNDS = 4;
