"""The k nearest vectors of a database that is sharded over ranks, the lowest id first on ties."""
import torch
import torch.distributed as dist


def operation(queries, database, index, score) -> None:
    """queries: [world * per, width], database: [rows, width], index, score: [per, min(k, world * rows)]."""
    world, (per, k), rows = dist.get_world_size(), index.shape, database.shape[0]
    ids = torch.arange(rows, device=queries.device) + dist.get_rank() * rows
    keys = (queries.float() @ database.float().T).long() * 2**32 - ids  # the larger, the nearer
    mine = keys.topk(min(k, rows), dim=1).values.view(world, per, -1)
    theirs = torch.empty_like(mine)
    dist.all_to_all_single(theirs, mine)
    best = theirs.transpose(0, 1).reshape(per, -1).topk(k, dim=1).values
    index.copy_((-best) % 2**32)
    score.copy_((best + index) // 2**32)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for per, rows, width, k in ((2, 128, 64, 16), (4, 256, 64, 8)):
        draw = lambda n: torch.randint(-2, 3, (n, width), device="cuda", dtype=torch.int8)
        queries, index = draw(dist.get_world_size() * per), torch.empty(per, k, device="cuda").int()
        dist.broadcast(queries, 0)
        operation(queries, draw(rows), index, torch.empty_like(index))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
