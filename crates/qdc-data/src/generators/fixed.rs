//! Graphs without chance: the karate club, barbells, grids.

/// Ties of the karate club, each under its smaller end.
const TIES: [(u64, &[u64]); 26] = [
    (0, &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31]),
    (1, &[2, 3, 7, 13, 17, 19, 21, 30]),
    (2, &[3, 7, 8, 9, 13, 27, 28, 32]),
    (3, &[7, 12, 13]),
    (4, &[6, 10]),
    (5, &[6, 10, 16]),
    (6, &[16]),
    (8, &[30, 32, 33]),
    (9, &[33]),
    (13, &[33]),
    (14, &[32, 33]),
    (15, &[32, 33]),
    (18, &[32, 33]),
    (19, &[33]),
    (20, &[32, 33]),
    (22, &[32, 33]),
    (23, &[25, 27, 29, 32, 33]),
    (24, &[25, 27, 31]),
    (25, &[31]),
    (26, &[29, 33]),
    (27, &[33]),
    (28, &[31, 33]),
    (29, &[32, 33]),
    (30, &[32, 33]),
    (31, &[32, 33]),
    (32, &[33]),
];

/// Who went with the instructor (vertex 0) when the club split.
const INSTRUCTORS: [u32; 17] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 17, 19, 21];

/// The edges, and the faction of each of the 34 members.
///
/// Reference: W. Zachary, "An information flow model for conflict and fission in small groups", 1977.
pub(super) fn karate() -> (impl Iterator<Item = (u64, u64)>, Vec<u32>) {
    let edges = TIES.iter().flat_map(|(from, others)| others.iter().map(move |to| (*from, *to)));
    let factions = (0..34).map(|member| u32::from(!INSTRUCTORS.contains(&member))).collect();
    (edges, factions)
}

/// Cliques 0..clique and clique + path.., joined through the path between them.
pub(super) fn barbell(clique: u64, path: u64) -> impl Iterator<Item = (u64, u64)> {
    let pairs = move |start: u64| (0..clique).flat_map(move |i| (0..i).map(move |j| (start + j, start + i)));
    let bridge = (clique - 1..clique + path).map(|vertex| (vertex, vertex + 1));
    pairs(0).chain(bridge).chain(pairs(clique + path))
}

/// Vertex (row, column) is number row * columns + column.
pub(super) fn grid(rows: u64, columns: u64) -> impl Iterator<Item = (u64, u64)> {
    let vertices = move || (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)));
    let along = vertices().filter(move |&(_, column)| column + 1 < columns);
    let down = vertices().filter(move |&(row, _)| row + 1 < rows);
    let number = move |(row, column): (u64, u64)| row * columns + column;
    along
        .map(move |place| (number(place), number(place) + 1))
        .chain(down.map(move |place| (number(place), number(place) + columns)))
}
