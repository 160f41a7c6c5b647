import { problem } from "../model/text/problem.js";
import { LOGIN_DIRECTORY, uploadsCheck } from "./hostScripts.js";
import { literal, parentOf, quote, refusal, WORD } from "./shell.js";

/**
 * Scripts around an upload. Each upload has a name that no other upload has, of this apply or of another one: the
 * SHA-256 of its content, and the id that Terraform gives to the resource that uploads. `.new` follows until the upload
 * is seen to be whole.
 */

/** The uploads of a resource on their way. */
export interface UploadInput {
  /** Directory of the deployment's uploads. */
  readonly incoming: string;
  /** Id of the resource. */
  readonly id: string;
  /** Whether the login user uploads to {@link LOGIN_DIRECTORY}, and root takes the uploads from there. */
  readonly byUser: boolean;
  /** Address of the resource that makes the directory. */
  readonly staging: string;
}

/** The path that Terraform uploads to. */
export const draftOf = ({ incoming, id, byUser }: UploadInput, sha256: string, suffix = ""): string =>
  `${byUser ? LOGIN_DIRECTORY : incoming}/${sha256}.${id}${suffix}.new`;

/** The script of a resource; an upload with the suffix `.sh`. */
export const scriptOf = ({ incoming, id }: UploadInput): string => `${incoming}/${id}.sh`;

/**
 * Takes in a resource's uploads; run as root. Terraform continues after an upload that failed, so that this script can
 * remove the rest of the upload and say why. Hashes are in names only: a sensitive one in the script would make Terraform
 * hide what the script says.
 * @param suffixes one for each upload
 */
export function receiveScript(upload: UploadInput, suffixes: readonly string[]): string {
  const { incoming, id, byUser, staging } = upload;
  const directory = quote(incoming);
  const from = byUser ? LOGIN_DIRECTORY : directory;
  const drafts = suffixes.map((suffix) => `${from}/*.${quote(id + suffix)}.new`);
  const incomplete = problem(
    "delivery.incomplete-upload",
    "%s",
    "an upload did not arrive whole, and was removed",
    {
      received: "%s KiB left on that file system",
    },
  );
  const without = byUser ? `[ -d ${directory} ] || rm -f ${drafts.join(" ")}\n` : "";
  return `${without}${uploadsCheck(incoming, staging)}for draft in ${drafts.join(" ")}; do
  name=$(basename "$draft" .new)
  whole=${byUser ? `${directory}/$name.new` : '"$draft"'}
  if [ ! -f "$draft" ]${byUser ? ` || ! install -m 0600 -o root -g root "$draft" "$whole"` : ""} ||
    ! echo "$(echo "$name" | cut -c 1-64)  $whole" | sha256sum --check --status; then
    left=$(($(df --output=avail -k ${directory} | tail -n 1)))
    rm -f "$draft" "$whole"
    ${refusal(incomplete, directory, '"$left"')}
  fi
  case $name in
    *.sh) mv -f "$whole" ${quote(scriptOf(upload))} ;;
    *) mv -f "$whole" ${directory}/"$name" ;;
  esac
${byUser ? '  rm -f "$draft"\n' : ""}done
`;
}

/** A file whose size is known before it is uploaded. */
export interface SizedFile {
  /** The file's path on the host. */
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Refuses to upload a file that does not fit; run as root. There must be room for the upload, for the copies that
 * activation keeps of the new file and of the one that it replaces, and for the installed file.
 */
export function roomScript(
  { incoming, byUser, staging }: UploadInput,
  { path, bytes, sha256 }: SizedFile,
): string {
  const size = Math.ceil(bytes / 1024);
  const full = problem(
    "delivery.no-room",
    "%s",
    `is on a file system that has ${WORD} KiB left, but ${literal(path)} needs ${WORD} KiB with the copies that activation makes`,
  );
  return `${uploadsCheck(incoming, staging)}existing() {
  at=$1
  while [ ! -d "$at" ]; do at=$(dirname "$at"); done
  echo "$at"
}
# Of uploads that were cut off more than an hour ago.
find ${quote(incoming)}${byUser ? ` ${LOGIN_DIRECTORY}` : ""} -maxdepth 1 -name '*.new' -mmin +60 -delete || true
uploads=$(existing ${quote(incoming)})
target=$(existing ${quote(parentOf(path))})
kept=0
copied=0
if ! echo "${sha256}  "${quote(path)} | sha256sum --check --status 2> /dev/null; then
  copied=${size}
  if [ -f ${quote(path)} ]; then kept=$(($(stat -c %s ${quote(path)}) / 1024 + 1)); fi
fi
for at in "$uploads" "$target"${byUser ? " ." : ""}; do
  device=$(stat -c %d "$at")
  needs=${BESIDES_KIB}
  [ "$device" != "$(stat -c %d "$uploads")" ] || needs=$((needs + ${size} + copied + kept))
  [ "$device" != "$(stat -c %d "$target")" ] || needs=$((needs + copied))
${byUser ? `  [ "$device" != "$(stat -c %d .)" ] || needs=$((needs + ${size}))\n` : ""}  left=$(($(df --output=avail -k "$at" | tail -n 1)))
  [ "$left" -ge "$needs" ] || ${refusal(full, '"$at"', '"$left"', '"$needs"')}
done
`;
}

/** The room for the other files of a deployment, which are small: config, units, pages, keys. */
const BESIDES_KIB = 4096;
