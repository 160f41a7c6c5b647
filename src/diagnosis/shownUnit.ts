/** A property as `systemctl show` prints it; empty for one that is not there. */
export const shownProperty = (shown: string, name: string): string =>
  new RegExp(`^${name}=(.*)$`, "m").exec(shown)?.[1] ?? "";

/** Whether a unit has links by which it starts with the machine, by its `UnitFileState`. */
export const hasStartLinks = (state: string): boolean =>
  /^(?:enabled|enabled-runtime|linked|alias)$/.test(state);
