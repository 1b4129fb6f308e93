"""Rows of a table that is sharded over ranks: ids to the owners, rows back, in query order."""
import torch
import torch.distributed as dist


def operation(shard, ids, vocab, out) -> None:
    """shard: [ceil(vocab / world), width], ids: [queries], out: [queries, width]; int32."""
    world, per = dist.get_world_size(), shard.shape[0]
    known = ids < vocab
    order = torch.argsort(torch.where(known, ids, vocab))[: int(known.sum())]
    wanted = torch.bincount(ids[order].long() // per, minlength=world)
    given = torch.empty_like(wanted)
    dist.all_to_all_single(given, wanted)
    wanted, given = wanted.tolist(), given.tolist()
    asked = torch.empty(sum(given), dtype=ids.dtype, device=ids.device)
    dist.all_to_all_single(asked, ids[order], given, wanted)
    rows = torch.empty(sum(wanted), out.shape[1], dtype=out.dtype, device=out.device)
    dist.all_to_all_single(rows, shard[asked.long() % per], wanted, given)
    out.zero_()
    out[order] = rows


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for vocab, quads, queries in ((1024, 8, 256), (4096, 16, 1024)):
        shape = (-(-vocab // world), 4 * quads)
        shard = torch.randint(-(2**31), 2**31, shape, dtype=torch.int32, device="cuda")
        ids = torch.randint(0, vocab + -(-vocab // 16), (queries,), dtype=torch.int32, device="cuda")
        operation(shard, ids, vocab, torch.empty(queries, 4 * quads, dtype=torch.int32, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
