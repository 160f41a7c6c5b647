/** The input for the rotation of a proxy's logs. */
export interface LogRotationInput {
  /** Log files, absolute paths on the host. */
  readonly logs: readonly string[];
  /** Days whose logs are kept. */
  readonly keptDays: number;
  /** The proxy's service unit. */
  readonly service: string;
}

/**
 * A file for logrotate(8), as distributions run it every day.
 *
 * The proxy creates new files itself (`nocreate`): it could not write to a file that root created. Old ones are renamed
 * and never truncated (no `copytruncate`), so that no line is lost; the signal makes the proxy close them, and they are
 * compressed a day later, when workers that were finishing requests are gone. `su` is needed because the directory
 * belongs to the service's user, which exists only while the service runs, and because only root can enter
 * `/var/log/private`.
 */
export function renderLogRotation({ logs, keptDays, service }: LogRotationInput): string {
  const head = `# Rotation of the proxy's logs, kept for ${keptDays} days. ${MADE}`;
  if (logs.length === 0) return head;
  return `${head}${logs.map((log) => `"${log}"`).join("\n")}
{
	daily
	rotate ${keptDays}
	missingok
	notifempty
	compress
	delaycompress
	nocreate
	su root root
	sharedscripts
	postrotate
		systemctl kill --kill-who=main --signal=SIGUSR1 ${service} 2> /dev/null || true
	endscript
}
`;
}

const MADE = "Made by Portico; changes here are overwritten.\n";

/** The days in a file of {@link renderLogRotation}; undefined in any other file. */
export function keptDaysIn(rotation: string): number | undefined {
  const days = /^# .* kept for (\d+) days\./.exec(rotation)?.[1];
  return days === undefined ? undefined : Number(days);
}

/** Directory of files that logrotate(8) reads. */
export const ROTATION_DIRECTORY = "/etc/logrotate.d/";

/** Activation writes it: only the host knows which deployments it had, and where they logged to. */
export const FORMER_ROTATION_FILE = `${ROTATION_DIRECTORY}portico-former-logs`;

/**
 * A file for logrotate(8) that has logs removed which no deployment writes any more, once nothing was written to them
 * for the days that logs are kept. A rotation would need new lines to go on; here each rotated file is a log of its own.
 *
 * @param files the logs and their rotated files, absolute paths on the host
 */
export function renderFormerLogRotation(files: readonly string[], keptDays: number): string {
  return `# Removal of former logs after ${keptDays} days. ${MADE}${files.map((file) => `"${file}"`).join("\n")}
{
	daily
	rotate 0
	minage ${keptDays}
	# By a number that no rotated file has: logrotate renames a file before it removes it.
	start 999999
	missingok
	ifempty
	nocompress
	nodateext
	nocreate
	su root root
}
`;
}
