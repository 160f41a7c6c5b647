import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Application } from "../../src/constructs/index.js";
import { pythonPackage } from "../../testkit/pythonPackage.js";
import { asked, asUser, origin, PASSWORD, type RealApplication, type Running, USER } from "./clients.js";

const environment = pythonPackage("radicale", "3.9.0");
export const RADICALE = environment.programs;
export const prepareRadicale = environment.prepare;

const CALENDAR = `/${USER}/home/`;
const XML = { "Content-Type": "application/xml" };
const PRINCIPAL = '<propfind xmlns="DAV:"><prop><current-user-principal/></prop></propfind>';
const ALL_EVENTS = `<c:calendar-query xmlns:c="urn:ietf:params:xml:ns:caldav" xmlns="DAV:"><prop><getetag/></prop>
<c:filter><c:comp-filter name="VCALENDAR"/></c:filter></c:calendar-query>`;

const eventOf = (id: string): string =>
  [
    ...["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//test//EN", "BEGIN:VEVENT", `UID:${id}`],
    ...["DTSTAMP:20261129T120000Z", "DTSTART:20261130T120000Z", "SUMMARY:Stra\u00dfenfest", "END:VEVENT"],
    "END:VCALENDAR\r\n",
  ].join("\r\n");

/** As a calendar program does from the public name alone (RFC 6764, 6). */
export const radicale: RealApplication = {
  title: "Radicale",
  application: () => Application.radicale(),
  needs: ["radicale"],
  commands: ({ programs, folder, web }) => {
    const users = join(folder, "users");
    writeFileSync(users, `${USER}:${PASSWORD}\n`);
    const settings = [
      ...[`[server]`, `hosts = 127.0.0.1:${web}`, "[storage]", `filesystem_folder = ${folder}/files`],
      ...[
        "[auth]",
        "type = htpasswd",
        `htpasswd_filename = ${users}`,
        "htpasswd_encryption = plain",
        "delay = 0",
      ],
    ];
    writeFileSync(join(folder, "config"), `${settings.join("\n")}\n`);
    return [[join(programs, "radicale"), "--config", join(folder, "config")]];
  },
  use: async (at) => {
    for (const name of ["caldav", "carddav"]) {
      const { headers } = await asked(at, "PROPFIND", `/.well-known/${name}`);
      const location = new URL(headers.location!, origin(at));
      if (location.href !== `${origin(at)}/`) throw new Error(`${name} leads to ${location}`);
    }
    const found = await dav(at, "PROPFIND", "/", 207, PRINCIPAL, { Depth: "0", ...XML });
    if (!found.includes(`<href>/${USER}/</href>`)) throw new Error(`the principal is ${found}`);
    await dav(at, "MKCALENDAR", CALENDAR, 201);
    const id = randomUUID();
    const event = eventOf(id);
    await dav(at, "PUT", `${CALENDAR}old.ics`, 201, event, {
      "Content-Type": "text/calendar; charset=utf-8",
    });
    const listed = await dav(at, "REPORT", CALENDAR, 207, ALL_EVENTS, { Depth: "1", ...XML });
    if (!listed.includes(`${CALENDAR}old.ics`)) throw new Error(`the calendar has ${listed}`);
    const renamed = `${CALENDAR}${encodeURIComponent("new \u00e4.ics")}`;
    await dav(at, "MOVE", `${CALENDAR}old.ics`, 201, "", { Destination: `${origin(at)}${renamed}` });
    await dav(at, "GET", `${CALENDAR}old.ics`, 404);
    const back = await dav(at, "GET", renamed, 200);
    if (!back.includes(`UID:${id}`) || !back.includes("Stra\u00dfenfest"))
      throw new Error(`it comes back as ${back}`);
    const wrong = { Authorization: `Basic ${Buffer.from(`${USER}:wrong`).toString("base64")}` };
    const refused = await asked(at, "PROPFIND", CALENDAR, { headers: wrong });
    if (refused.status !== 401) throw new Error(`a wrong password gets ${refused.status}`);
    return [
      "the well-known paths and the principal lead to the public name",
      "an event was written, found, renamed and read back",
      "a wrong password is 401",
    ];
  },
};

async function dav(
  at: Running,
  method: string,
  path: string,
  expected: number,
  body = "",
  fields = {},
): Promise<string> {
  const seen = await asUser(at, method, path, body, fields);
  if (seen.status !== expected) throw new Error(`${method} ${path} gets ${seen.status}: ${seen.body}`);
  return seen.body;
}
