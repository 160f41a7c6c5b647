/** Names and values as a reader of a file of environment variables sees them; undefined where it refuses the file. */
export type Variables = Readonly<Record<string, string>> | undefined;

const INHERITED = "(of the environment)";

/** Docker Compose, without the expansion of values. */
function compose(text: string): Variables {
  const read: Record<string, string> = {};
  let rest = text.replace(/^\ufeff/, "").replaceAll("\r\n", "\n");
  for (;;) {
    rest = rest.trimStart();
    if (rest === "") return read;
    if (rest.startsWith("#")) {
      rest = rest.includes("\n") ? rest.slice(rest.indexOf("\n")) : "";
      continue;
    }
    rest = rest.replace(/^export\s+/, "");
    const ends = rest.search(/[=:\n]/);
    const name = rest.slice(0, ends).trimEnd();
    if (ends === -1 || !/^[\w.\-[\]]*$/.test(name)) return undefined;
    const isInherited = rest[ends] === "\n";
    rest = rest.slice(ends + 1);
    if (isInherited) {
      read[name] = INHERITED;
      continue;
    }
    rest = rest.replace(/^[ \t\r\v\f]+/, "");
    const quote = rest[0];
    if (quote !== '"' && quote !== "'") {
      const [line] = rest.split("\n");
      read[name] = line!.split(" #")[0]!.trimEnd();
      rest = rest.slice(line!.length);
      continue;
    }
    let at = 1;
    while (at < rest.length && rest[at] !== quote) at += rest[at] === "\\" ? 2 : 1;
    if (at >= rest.length) return undefined;
    read[name] = rest.slice(1, at);
    rest = rest.slice(at + 1);
  }
}

/** `docker run --env-file`. */
function dockerRun(text: string): Variables {
  const lines = text
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .map((line) => line.trimStart())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (lines.some((line) => line.startsWith("=") || /\s/.test(line.split("=")[0]!))) return undefined;
  return Object.fromEntries(
    lines.map((line) => {
      const [name, ...value] = line.split("=");
      return [name!, value.length === 0 ? INHERITED : value.join("=")];
    }),
  );
}

/** `EnvironmentFile=` of systemd; before version 254, a comment goes on behind a backslash. */
const systemd =
  (commentsGoOn: boolean) =>
  (text: string): Variables => {
    const read: Record<string, string> = {};
    let at = 0;
    const isEnd = () => at >= text.length || text[at] === "\n" || text[at] === "\r";
    while (at < text.length) {
      if (/[ \t\r\n]/.test(text[at]!)) {
        at++;
      } else if (/[#;]/.test(text[at]!)) {
        for (; !isEnd(); at++) if (commentsGoOn && text[at] === "\\") at++;
      } else {
        const from = at;
        while (!isEnd() && text[at] !== "=") at++;
        const name = text.slice(from, at).trimEnd();
        if (isEnd()) continue;
        at++;
        let [value, isOpen, kept] = ["", true, 0];
        for (; !isEnd(); at++) {
          const c = text[at]!;
          if (isOpen && (c === '"' || c === "'")) {
            for (at++; at < text.length && text[at] !== c; at++) {
              if (c === '"' && text[at] === "\\") at++;
              value += text[at] ?? "";
            }
            kept = value.length;
          } else if (c === "\\") {
            at++;
            if (!isEnd()) value += text[at]!;
            [isOpen, kept] = [false, value.length];
          } else if (!isOpen || !/[ \t]/.test(c)) {
            value += c;
            isOpen = false;
            if (!/[ \t]/.test(c)) kept = value.length;
          }
        }
        if (/^[A-Za-z_]\w*$/.test(name)) read[name] = value.slice(0, kept);
      }
    }
    return read;
  };

export const READERS = { compose, dockerRun, systemd: systemd(false), systemd252: systemd(true) };
