/** Data to try the page with. */

/** Return a file of made-up orders, the same each time. */
export function sampleOrders() {
  let seed = 7;
  const chance = (most) => {
    seed = (seed * 16807) % 2147483647;
    return seed % most;
  };
  const prices = [['chair', 89], ['desk', 240], ['lamp', 35], ['shelf', 120]];
  const rows = Array.from({ length: 400 }, (_, at) => {
    const day = new Date(Date.UTC(2025, 0, 1 + Math.floor((at * 364) / 399))).toISOString().slice(0, 10);
    const [product, price] = prices[chance(4)];
    const quantity = 1 + chance(6);
    return [day, ['north', 'south', 'east', 'west'][chance(4)], product, quantity, chance(33) ? (price * quantity).toFixed(2) : ''].join(',');
  });
  return new File([['date,region,product,quantity,amount', ...rows, ''].join('\n')], 'orders.csv');
}
