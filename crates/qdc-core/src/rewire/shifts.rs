//! What an edge a~b does to the squares over all other edges.
//!
//! The curvature of an edge i~j needs a count of squares for each vertex beside it ([`Sides`]). An edge a~b
//! changes few of these counts: those of a and b over the edges that close a square with it, and over the
//! edges at a and b those of common neighbours. Each change is a shift of one count, known from the graph
//! without a~b, so that the same shifts, forwards or backwards, serve when the edge comes and when it goes.
//!
//! [`Sides`]: super::curvature::Sides

use super::curvature::Variant;
use super::neighbourhoods::{Bits, Neighbourhoods};

/// One count of squares over the edge with this number: without a~b, and with it. A vertex that does not
/// stand beside the edge counts 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shift {
    pub(super) edge: u32,
    pub(super) without: u32,
    pub(super) with: u32,
}

/// Calls `visit` with every count over another edge that differs without and with a~b, which must not be an
/// edge of `neighbourhoods`.
///
/// Costs min(degree, N / 64) steps for each edge that closes a square with a~b and for each that joins a
/// neighbour of one end to a neighbour of the other, instead of as many for every neighbour of such an edge.
pub(super) fn for_each_shift(
    neighbourhoods: &Neighbourhoods,
    (a, b): (u32, u32),
    variant: Variant,
    mut visit: impl FnMut(Shift),
) {
    let beside = [neighbourhoods.set(a), neighbourhoods.set(b)];
    let (a, b) = (End { vertex: a, beside: &beside[0] }, End { vertex: b, beside: &beside[1] });
    for (near, far) in [(a, b), (b, a)] {
        match variant {
            Variant::Formula => {
                formula_across(neighbourhoods, near, far, &mut visit);
                formula_at_end(neighbourhoods, near, far, &mut visit);
            }
            Variant::Code => code(neighbourhoods, near, far, &mut visit),
        }
    }
}

/// An end of a~b, and its neighbours without the other.
#[derive(Clone, Copy)]
struct End<'a> {
    vertex: u32,
    beside: &'a Bits,
}

/// Over an edge i~j with i beside `near` only and j beside `far` only, `near` gets one more square.
///
/// Its count is |N(near) and J| where J = N(j) \ N(i) \ {i}. With T = N(near) and N(j), to which i belongs,
/// that is |T| - |T and N(i)| - 1.
fn formula_across(
    neighbourhoods: &Neighbourhoods,
    near: End<'_>,
    far: End<'_>,
    visit: &mut impl FnMut(Shift),
) {
    let mut set = Bits::new(neighbourhoods.nodes());
    let mut common = Vec::new();
    for &j in neighbourhoods.of(far.vertex).iter().filter(|&&j| !near.beside.contains(j)) {
        common.extend(neighbourhoods.of(j).iter().copied().filter(|&vertex| near.beside.contains(vertex)));
        set.extend(common.iter().copied());
        let opposite = |&(i, _): &(u32, u32)| set.contains(i) && !far.beside.contains(i);
        for (i, edge) in neighbourhoods.numbered(j).filter(opposite) {
            let without = common.len() as u32 - neighbourhoods.count_in(i, &set) - 1;
            visit(Shift { edge, without, with: without + 1 });
        }
        set.clear(&common);
        common.clear();
    }
}

/// Over an edge near~j, `far` joins the side I of `near`, or, if it is a neighbour of j, leaves the side J of
/// j; the vertices opposite gain or lose the squares through it.
fn formula_at_end(
    neighbourhoods: &Neighbourhoods,
    near: End<'_>,
    far: End<'_>,
    visit: &mut impl FnMut(Shift),
) {
    let mut side = Bits::new(neighbourhoods.nodes());
    let mut partners = Vec::new();
    for (j, edge) in neighbourhoods.numbered(near.vertex) {
        let of_j = neighbourhoods.of(j);
        partners.clear();
        if far.beside.contains(j) {
            // J, which the partners of `far` in I see.
            let alone = |vertex: u32| vertex != near.vertex && !near.beside.contains(vertex);
            let in_i = |&k: &u32| k != j && near.beside.contains(k) && !neighbourhoods.adjacent(j, k);
            partners.extend(neighbourhoods.of(far.vertex).iter().copied().filter(in_i));
            side.extend(of_j.iter().copied().filter(|&vertex| alone(vertex)));
            visit(Shift { edge, without: partners.len() as u32, with: 0 });
            for &k in &partners {
                let without = neighbourhoods.count_in(k, &side);
                visit(Shift { edge, without, with: without - 1 });
            }
            side.clear(of_j);
        } else {
            let in_j = |&l: &u32| far.beside.contains(l) && !near.beside.contains(l);
            partners.extend(of_j.iter().copied().filter(in_j));
            if partners.is_empty() {
                continue;
            }
            // I, which the partners of `far` in J see.
            side.copy(near.beside);
            of_j.iter().chain([&j]).for_each(|&vertex| side.remove(vertex));
            visit(Shift { edge, without: 0, with: partners.len() as u32 });
            for &l in &partners {
                let without = neighbourhoods.count_in(l, &side);
                visit(Shift { edge, without, with: without + 1 });
            }
            side.clear(neighbourhoods.of(near.vertex));
        }
    }
}

/// The same for the published program, whose sides are all neighbours of an end: a vertex v beside one end
/// counts |N(v) and N(other end)|, less one if it stands there. That does not depend on the end it stands
/// beside.
fn code(neighbourhoods: &Neighbourhoods, near: End<'_>, far: End<'_>, visit: &mut impl FnMut(Shift)) {
    // A neighbour of `near` that has no neighbour in common with it counts less than nothing; no edge asks.
    let towards_near =
        |v: u32| neighbourhoods.count_in(v, near.beside).saturating_sub(u32::from(near.beside.contains(v)));
    let mut counts = vec![0; neighbourhoods.nodes()];
    // Over an edge i~j with i beside `near` and j beside `far`, `near` gets one more square.
    for &j in neighbourhoods.of(far.vertex) {
        let without = towards_near(j);
        counts[j as usize] = without;
        for (_, edge) in neighbourhoods.numbered(j).filter(|&(i, _)| near.beside.contains(i)) {
            visit(Shift { edge, without, with: without + 1 });
        }
    }
    let degree = neighbourhoods.of(near.vertex).len() as u32;
    let shared_by_ends = neighbourhoods.count_in(far.vertex, near.beside);
    for (j, edge) in neighbourhoods.numbered(near.vertex) {
        // `far` is a neighbour more of `near`, to be counted beside it and by whoever stands beside j.
        let of_j = || neighbourhoods.of(j).iter().filter(|&&l| far.beside.contains(l));
        for &l in of_j() {
            let without = counts[l as usize];
            visit(Shift { edge, without, with: without + 1 });
        }
        visit(Shift { edge, without: degree, with: degree + 1 }); // `near` itself, beside j
        let common = of_j().count() as u32;
        if far.beside.contains(j) {
            visit(Shift { edge, without: 0, with: common });
            visit(Shift { edge, without: shared_by_ends, with: shared_by_ends - 1 }); // `far`, beside j
        } else {
            visit(Shift { edge, without: 0, with: common + 1 });
        }
    }
}
