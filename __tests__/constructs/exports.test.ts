test("the package exports classes, and the few functions and constants of its pages, and nothing internal", async () => {
  const { default: _, ...exported } = await import("../../src/index.js");
  const [classes, others] = [true, false].map((isClass) =>
    Object.entries(exported)
      .filter(([, value]) => (typeof value === "function" && /^class\b/.test(String(value))) === isClass)
      .map(([name]) => name),
  );
  expect(classes!.every((name) => /^[A-Z]\w+$/.test(name))).toBe(true);
  expect(others!.sort()).toEqual([
    "DEFAULT_HOST_PATHS",
    "FILE_SYNC_RESPONSE_HEADERS",
    "PROBLEM_CODES",
    "formatProblem",
    "parseConfig",
    "parseConfigText",
    "renderAlertRules",
    "renderDashboard",
  ]);
});
