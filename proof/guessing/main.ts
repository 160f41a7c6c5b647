import { laboratory, numberOf } from "../../testkit/laboratory.js";
import { FLOODS, flood } from "./floods.js";
import { unknownUsers } from "./unknownUsers.js";

const UNKNOWN = "unknown users";
const NAMES = [...Object.keys(FLOODS), UNKNOWN];

laboratory(
  `npm run guessing -- [OPTIONS]: guesses at passwords, and what they cost others and tell those who guess

Guesses a thousand a second from one address, from a hundred thousand and from some hundred real ones, at the defaults of
passwordGuard: the application sees what the rule allows, other clients do not wait, and memory is bounded. Then wrong
passwords of users and of unknown names at Access.basic, whose times must tell nothing.`,
  {
    seconds: ["10", "how long others are measured beside guesses"],
    tries: ["10000", "wrong passwords of a user, and as many of unknown names"],
    only: [undefined, `one of: ${NAMES.join(", ")}`],
  },
  async (given) => {
    const names = NAMES.filter((name) => name === (given.only ?? name));
    if (names.length === 0) throw new Error(`--only ${given.only}: is not one of ${NAMES.join(", ")}`);
    const [seconds, tries] = [numberOf("seconds", given.seconds), numberOf("tries", given.tries)];
    const [wrong, beyondLimit]: [string[], string[]] = [[], []];
    for (const name of names) {
      const verdict = name === UNKNOWN ? await unknownUsers(tries) : await flood(name, seconds);
      wrong.push(...verdict.wrong.map((one) => `${name}: ${one}`));
      beyondLimit.push(...(verdict.beyondLimit ?? []).map((one) => `${name}: ${one}`));
    }
    return { wrong, beyondLimit };
  },
);
