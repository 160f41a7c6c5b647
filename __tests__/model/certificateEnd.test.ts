import { type CertificateEnd, certificateEnd } from "../../src/model/net/certificateEnd.js";
import { DAY_MS, HOUR_MS } from "../../src/model/text/duration.js";

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

test.each([6, 90, 3_650])("a certificate of %d days ends soon only if its renewal is overdue", (days) => {
  const notAfter = 1_800_000_000_000;
  const life = { notBefore: notAfter - days * DAY_MS, notAfter };
  for (const left of [1.5, 0.5, 0.1]) {
    const now = notAfter - left * DAY_MS;
    const end = (renewAt?: number): CertificateEnd => certificateEnd({ ...life, renewAt }, now);
    expect([left, end(now + HOUR_MS), end(now - HOUR_MS + 1)]).toEqual([left, "later", "later"]);
    expect([left, end(now - HOUR_MS)]).toEqual([left, end()]);
    expect(end()).not.toBe("later");
  }
  expect(certificateEnd({ ...life, renewAt: notAfter + DAY_MS }, notAfter + 1)).toBe("ended");
});

test("a renewal that is overdue long before the end needs nobody yet", () => {
  const now = 1_800_000_000_000;
  const life = { notBefore: now - 62 * DAY_MS, notAfter: now + 28 * DAY_MS, renewAt: now - 2 * DAY_MS };
  expect(certificateEnd(life, now)).toBe("later");
});
