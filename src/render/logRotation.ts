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
  const head = "# Rotation of the proxy's logs. Made by Portico; changes here are overwritten.\n";
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
