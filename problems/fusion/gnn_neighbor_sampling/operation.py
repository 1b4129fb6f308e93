"""Two hops of neighbour sampling: nodes to their owners, samples back, twice."""
import torch
import torch.distributed as dist


def samples(degree, neighbours, wanted, fanout: int) -> torch.Tensor:
    """The first neighbours of `wanted` nodes of any rank: [wanted, fanout], -1 behind the last."""
    world, (nodes, width) = dist.get_world_size(), neighbours.shape
    owner = wanted // nodes
    order = torch.argsort(owner, stable=True)
    sent = torch.bincount(owner, minlength=world)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    sent, received = sent.tolist(), received.tolist()
    asked = torch.empty(sum(received), dtype=wanted.dtype, device=wanted.device)
    dist.all_to_all_single(asked, wanted[order], received, sent)
    rows = (asked % nodes).long()
    own = torch.full((rows.numel(), fanout), -1, dtype=neighbours.dtype, device=wanted.device)
    most = min(fanout, width)
    place = torch.arange(most, device=wanted.device)
    own[:, :most] = torch.where(place < degree[rows, None], neighbours[rows, :most], -1)
    came = torch.empty(wanted.numel(), fanout, dtype=own.dtype, device=wanted.device)
    dist.all_to_all_single(came, own, sent, received)
    out = torch.empty_like(came)
    out[order] = came
    return out


def operation(degree, neighbours, seeds, picked, ids, count) -> None:
    fanout = picked.shape[1]
    picked.copy_(samples(degree, neighbours, seeds, fanout))
    first = picked[picked >= 0].unique()
    second = samples(degree, neighbours, first, fanout)
    reached = torch.cat([seeds, first, second[second >= 0]]).unique()
    ids[: reached.numel()] = reached
    count.fill_(reached.numel())


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, fanout, width = dist.get_world_size(), 4, 8

    def draw(limit: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, limit, shape, dtype=torch.int32, device="cuda")

    for batch, nodes in ((64, 4096), (256, 8192)):
        ids = draw(1, batch * (1 + fanout + fanout * fanout))
        operation(draw(width + 1, nodes), draw(world * nodes, nodes, width),
                  draw(world * nodes, batch), draw(1, batch, fanout), ids, draw(1, 1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
