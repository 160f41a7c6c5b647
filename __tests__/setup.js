// Element by element, as Jest compares typed arrays, megabytes take seconds.
expect.addEqualityTesters([(a, b) => (Buffer.isBuffer(a) && Buffer.isBuffer(b) ? a.equals(b) : undefined)]);
