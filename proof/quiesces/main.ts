import { laboratory, numberOf, seedOption } from "../../testkit/laboratory.js";
import { type Kind, rounds } from "./rounds.js";

laboratory(
  `npm run quiesces -- [OPTIONS]: a command runs under \`portico quiesce\` again and again, while clients upload

Four clients upload files over HTTP/1.1 and HTTP/2, and try again after a 503. In most rounds something is killed with
SIGKILL at a random moment: the command, the master, a worker, the command line; in others the config is reloaded, or a
slow upload is in progress. What got a response of success must be stored whole, nothing may be written while a command
runs, uploads are refused for a short time only before it, and afterwards everything is open again and nothing is held.`,
  {
    rounds: ["100", "how many"],
    "cli-kills": ["3", "how many of them kill the command line: each takes 30 s"],
    seed: [undefined, "which moments (default: others in each run)"],
  },
  async (given) => {
    const count = numberOf("rounds", given.rounds);
    const cliKills = numberOf("cli-kills", given["cli-kills"], 0);
    const others: readonly Kind[] = ["nothing", "master", "command", "worker", "slow", "master", "reload"];
    const kinds = Array.from({ length: count }, (_, i) =>
      i < cliKills ? "cli" : others[i % others.length]!,
    );
    const { wrong } = await rounds(kinds, seedOption(given.seed), console.log);
    return { wrong };
  },
);
