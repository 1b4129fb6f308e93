"""A layer of experts with corrections of low rank, from routing by score to the sum of the answers."""
import torch
import torch.distributed as dist


def operation(x, scores, w, down, up, topk, out) -> None:
    """x: [tokens, k], w: [per, n, k], down: [per, 8, k], up: [per, n, 8]; scores: [tokens, experts]."""
    world, rank, per = dist.get_world_size(), dist.get_rank(), w.shape[0]
    best, experts = scores.topk(topk, dim=1)
    expert, order = experts.flatten().sort(stable=True)
    token = order // topk
    sent = torch.bincount(expert // per, minlength=world)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    to, of = sent.tolist(), received.tolist()
    rows, ids = x.new_empty(sum(of), x.shape[1]), expert.new_empty(sum(of))
    dist.all_to_all_single(rows, x[token], of, to)
    dist.all_to_all_single(ids, expert, of, to)
    answers = rows.new_empty(len(ids), w.shape[1], dtype=torch.float32)
    for e in range(per):
        mine = ids == rank * per + e
        part = rows[mine].float()
        low = part @ down[e].float().t() @ up[e].float().t()
        answers[mine] = (part @ w[e].float().t() + low).relu()
    home = torch.empty(len(token), w.shape[1], device=x.device)
    dist.all_to_all_single(home, answers, to, of)
    gates = 1.0 + best.flatten()[order].float()
    out.zero_().index_add_(0, token, gates[:, None] * home)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    experts, topk, k, n = 4 * dist.get_world_size(), 2, 128, 32
    for tokens in (16, 32):
        x = torch.randint(-4, 5, (tokens, k), device="cuda").half()
        scores = torch.rand(tokens, 64, device="cuda").argsort(dim=1)[:, :experts].contiguous()
        w = torch.randint(-4, 5, (4, n, k), device="cuda").half()
        down = torch.randint(-1, 2, (4, 8, k), device="cuda").half()
        up = torch.randint(-1, 2, (4, n, 8), device="cuda").half()
        operation(x, scores, w, down, up, topk, torch.empty(tokens, n, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
