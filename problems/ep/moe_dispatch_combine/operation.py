"""Dispatch of tokens to the ranks of their experts, and combine of the answers."""
import torch
import torch.distributed as dist


def holders(expert_ids: torch.Tensor, experts: int, world: int) -> torch.Tensor:
    """[tokens, topk]: the rank that holds each chosen expert."""
    per = -(-experts // world)
    return expert_ids // per


def dispatch(x, expert_ids, experts, recv_x, recv_from, recv_experts, recv_rows):
    world, rank, tokens = dist.get_world_size(), dist.get_rank(), x.shape[0]
    per = -(-experts // world)
    owner = holders(expert_ids, experts, world)
    wanted = torch.stack([(owner == r).any(dim=1) for r in range(world)])  # [world, tokens]
    picks = [wanted[r].nonzero().flatten() for r in range(world)]          # ascending tokens
    sends = [len(p) for p in picks]
    order = torch.cat(picks)
    coming = torch.empty(world, dtype=torch.int32, device=x.device)
    dist.all_to_all_single(coming, torch.tensor(sends, dtype=torch.int32, device=x.device))
    receives = coming.tolist()
    rows = sum(receives)

    def exchange(mine: torch.Tensor) -> torch.Tensor:
        theirs = torch.empty((rows,) + mine.shape[1:], dtype=mine.dtype, device=mine.device)
        dist.all_to_all_single(theirs, mine.contiguous(), output_split_sizes=receives, input_split_sizes=sends)
        return theirs

    recv_x[:rows] = exchange(x[order])
    recv_from[:rows] = exchange((rank * tokens + order).to(torch.int32))
    chosen = exchange(expert_ids[order])
    recv_experts[:rows] = torch.where(chosen // per == rank, chosen - rank * per, -1)
    recv_rows.copy_(coming)
    return picks, sends, receives


def combine(y, expert_ids, weights, experts, routes, out):
    world = dist.get_world_size()
    picks, sends, receives = routes
    answers = torch.empty((sum(sends), y.shape[1]), dtype=y.dtype, device=y.device)
    dist.all_to_all_single(
        answers, y[: sum(receives)].contiguous(), output_split_sizes=sends, input_split_sizes=receives
    )
    owner = holders(expert_ids, experts, world)
    out.zero_()
    for r, part in enumerate(answers.split(sends)):
        gate = torch.zeros(len(picks[r]), device=y.device)
        for k in range(expert_ids.shape[1]):  # in this order
            here = owner[picks[r], k] == r
            gate = torch.where(here, gate + weights[picks[r], k], gate)
        # fmaf is asked for. float64 comes next to it: a product of floats is exact in it.
        out[picks[r]] = (gate.double()[:, None] * part.double() + out[picks[r]].double()).float()


def main() -> None:
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    experts, topk, words = 32, 4, 512
    for tokens in (16, 64):
        x = torch.randint(-(2**31), 2**31, (tokens, words), dtype=torch.int32, device="cuda")
        ids = torch.stack([torch.randperm(experts, device="cuda")[:topk] for _ in range(tokens)]).to(torch.int32)
        weights = torch.rand(tokens, topk, device="cuda")
        most = world * tokens
        recv_x = torch.full((most, words), -1, dtype=torch.int32, device="cuda")
        recv_from = torch.full((most,), -1, dtype=torch.int32, device="cuda")
        recv_experts = torch.full((most, topk), -1, dtype=torch.int32, device="cuda")
        recv_rows = torch.empty(world, dtype=torch.int32, device="cuda")
        routes = dispatch(x, ids, experts, recv_x, recv_from, recv_experts, recv_rows)
        y = torch.rand(most, words, device="cuda")
        combine(y, ids, weights, experts, routes, torch.empty(tokens, words, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
