import { laboratory, numberOf } from "../../testkit/laboratory.js";
import { reportText } from "./judge.js";
import { PROXIES, underLoad } from "./underLoad.js";

laboratory(
  `npm run servers -- [OPTIONS]: servers of an upstream killed, hung, slowed, drained and brought back under load

Reads, posts and uploads go through Portico, then through haproxy, to three servers. Through Portico no request fails that
its rules allow to succeed; what fails through haproxy is shown.`,
  { mib: ["1024", "size of an upload in MiB"], cycles: ["6", "how often all is done"] },
  async (given) => {
    const uploadBytes = Math.round(numberOf("mib", given.mib, "part") * 2 ** 20);
    const cycles = numberOf("cycles", given.cycles);
    const wrong: string[] = [];
    for (const name of PROXIES) {
      const report = await underLoad(name, { uploadBytes, cycles });
      console.log(reportText(report));
      if (name === "portico") wrong.push(...report.wrong);
      else for (const one of report.wrong) console.log(`     ${one}`);
    }
    return { wrong };
  },
);
