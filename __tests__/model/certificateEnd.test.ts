import { type CertificateEnd, certificateEnd } from "../../src/model/net/certificateEnd.js";
import { DAY_MS } from "../../src/model/text/duration.js";

/** Of how many days it is valid, what comes so many days before its end. */
test.each<[number, ...[number, CertificateEnd][]]>([
  [6, [1.6, "later"], [1.5, "soon"], [0.7, "soon"], [0.6, "last"], [-0.1, "ended"]],
  [90, [14.1, "later"], [14, "soon"], [3.1, "soon"], [3, "last"], [-0.1, "ended"]],
  [3_650, [14.1, "later"], [14, "soon"], [3.1, "soon"], [3, "last"], [-0.1, "ended"]],
])("the end of a certificate of %d days", (days, ...cases) => {
  const notAfter = 1_800_000_000_000;
  const life = { notBefore: notAfter - days * DAY_MS, notAfter };
  for (const [left, end] of cases)
    expect([left, certificateEnd(life, notAfter - left * DAY_MS)]).toEqual([left, end]);
});
