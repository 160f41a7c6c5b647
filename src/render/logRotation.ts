/** What rotates the logs of a proxy. */
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
 * The proxy makes its new files itself (`nocreate`): a file that root made could not be written by it. They are renamed
 * and never cut (no `copytruncate`), so that no line is lost; the signal has the proxy let the old ones go, and they
 * are compressed a day later, when workers that still finished requests are gone. `su` is needed because the
 * directory belongs to the service's user, who exists only while the service runs, and whom nobody but root can follow
 * into `/var/log/private`.
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
