//! Pickles. The command line reads only those whose checksum it knows, so these go to the fuzzers alone.

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let whole = qdc_data::fuzzing::pickled_matrix();
    let mut seeds: Vec<Vec<u8>> = (1..16).map(|part| whole[..whole.len() * part / 16].to_vec()).collect();
    seeds.push(whole);
    // Neighbours by vertex, with a class of Python's own.
    seeds.push(
        b"\x80\x02ccollections\ndefaultdict\nc__builtin__\nlist\n\x85R(K\x00]K\x01aK\x01]K\x00au.".to_vec(),
    );
    seeds.push(b"(dp0\nI0\n(lp1\nI1\nasI1\n(lp2\nI0\nas.".to_vec());
    // One list, remembered and referred to a thousand times; BUILD over and over; brackets without end.
    let mut shared = b"\x80\x02}(K\x00]q\x01(K\x01K\x02K\x03e".to_vec();
    (0..1000u16).for_each(|key| {
        shared.push(b'M');
        shared.extend(key.to_le_bytes());
        shared.extend(b"h\x01");
    });
    shared.extend(b"u.");
    seeds.push(shared);
    seeds.push(
        [b"\x80\x02cscipy.sparse.csr\ncsr_matrix\n)\x81".to_vec(), b"}b".repeat(1000), b".".to_vec()]
            .concat(),
    );
    seeds.push([b"\x80\x02".to_vec(), b"]".repeat(5000), b"a".repeat(4999), b".".to_vec()].concat());
    seeds.push(b"cos\nsystem\n(S'true'\ntR.".to_vec());
    seeds
}
