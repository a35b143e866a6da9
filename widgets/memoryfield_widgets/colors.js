// Colours and shapes of the map. Both are chosen to be told apart by people who see colours differently, and a shape or
// a size always says the same as the colour.

// Okabe and Ito (2008), "Color universal design"; black turns white on a dark ground.
const CATEGORIES_LIGHT = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#b3a400", "#1a1a1a"];
const CATEGORIES_DARK = ["#4aa8e8", "#f07a2e", "#1fc79a", "#e39bc4", "#8fd0f5", "#f2b93b", "#f0e442", "#f2f2f2"];
const REST_LIGHT = "#8a9099";
const REST_DARK = "#7c838d";
const PLAIN_LIGHT = "#2f6f9f";
const PLAIN_DARK = "#6fb3e0";
export const MISSING = 255; // category of pages that have none
export const FULL = 0.92; // how much of the ground a point covers
export const DIM = 0.4; // the same, of points that are not selected: they never vanish

// Nine steps of viridis (van der Walt and Smith, 2015).
const VIRIDIS = [
  [68, 1, 84],
  [71, 44, 122],
  [59, 81, 139],
  [44, 113, 142],
  [33, 144, 141],
  [39, 173, 129],
  [92, 200, 99],
  [170, 220, 50],
  [253, 231, 37],
];

export const SHAPES = ["circle", "square", "diamond", "triangle", "plus", "down", "cross", "ring"];

/** Returns a hexadecimal colour as three numbers from 0 to 255. */
export function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

export function css(color) {
  return `rgb(${color.map(Math.round).join(", ")})`;
}

/** Returns the colour of a category as three numbers. */
export function categoryColor(number, dark) {
  if (number === MISSING) return rgb(dark ? REST_DARK : REST_LIGHT);
  const colors = dark ? CATEGORIES_DARK : CATEGORIES_LIGHT;
  return rgb(colors[number % colors.length]);
}

/** Returns the colour of pages when no colour says anything. */
export function plainColor(dark) {
  return rgb(dark ? PLAIN_DARK : PLAIN_LIGHT);
}

/**
 * Returns the colour of a value from 0 to 1, or of a missing one (NaN). High values stand out from the ground: they are
 * dark on a light one and bright on a dark one.
 */
export function valueColor(value, dark) {
  if (!(value >= 0)) return rgb(dark ? REST_DARK : REST_LIGHT);
  const share = Math.min(value, 1);
  // the end that would vanish in the ground is left out: a contrast of 2.2 remains
  const at = (dark ? 0.3 + 0.7 * share : 0.8 * (1 - share)) * (VIRIDIS.length - 1);
  const below = Math.min(Math.floor(at), VIRIDIS.length - 2);
  const color = VIRIDIS[below].map((low, i) => low + (VIRIDIS[below + 1][i] - low) * (at - below));
  // on white a bright yellow would shout: low values fade towards grey
  return dark ? color : color.map((part) => part + (150 - part) * 0.5 * (1 - share));
}

/** Returns the outline of a shape as the `d` of an SVG path around a point. */
export function shapePath(shape, radius, x = 0, y = 0) {
  const r = radius;
  const polygon = (points) => `M${points.map(([px, py]) => `${x + px * r} ${y + py * r}`).join("L")}Z`;
  const circle = (size) => {
    const a = size * r;
    return `M${x - a} ${y}a${a} ${a} 0 1 0 ${2 * a} 0a${a} ${a} 0 1 0 ${-2 * a} 0Z`;
  };
  const plus = [
    [-0.3, -1],
    [0.3, -1],
    [0.3, -0.3],
    [1, -0.3],
    [1, 0.3],
    [0.3, 0.3],
    [0.3, 1],
    [-0.3, 1],
    [-0.3, 0.3],
    [-1, 0.3],
    [-1, -0.3],
    [-0.3, -0.3],
  ];
  const turned = Math.SQRT1_2;
  switch (SHAPES[shape % SHAPES.length]) {
    case "square":
      return polygon([
        [-0.84, -0.84],
        [0.84, -0.84],
        [0.84, 0.84],
        [-0.84, 0.84],
      ]);
    case "diamond":
      return polygon([
        [0, -1.15],
        [1.15, 0],
        [0, 1.15],
        [-1.15, 0],
      ]);
    case "triangle":
      return polygon([
        [0, -1.1],
        [1.05, 0.8],
        [-1.05, 0.8],
      ]);
    case "down":
      return polygon([
        [0, 1.1],
        [1.05, -0.8],
        [-1.05, -0.8],
      ]);
    case "plus":
      return polygon(plus);
    case "cross":
      return polygon(plus.map(([px, py]) => [(px - py) * turned, (px + py) * turned]));
    case "ring":
      return circle(1) + circle(0.45);
    default:
      return circle(1);
  }
}
